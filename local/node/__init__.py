"""The process node as a program of Sublet's: `embedded.node` over the shared client, with Sublet's static pods."""
