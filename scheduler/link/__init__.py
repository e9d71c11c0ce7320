"""The link with agents: its process, frames and streams, who may call, and what they report."""
