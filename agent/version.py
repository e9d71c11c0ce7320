"""The agent's version, for whoever asks: its own name in requests, `--version`, the hello to the scheduler."""

from __future__ import annotations

VERSION = "0.10.0"
