"""The whole list: importing this module enters every behaviour."""

from __future__ import annotations

import importlib
from pathlib import Path

from embedded.tests.conformance.behaviour import BEHAVIOURS

for _file in sorted((Path(__file__).parent / "behaviours").glob("*.py")):
    importlib.import_module(f"embedded.tests.conformance.behaviours.{_file.stem}")

__all__ = ["BEHAVIOURS"]
