"""Faults with an owner on one machine: Sublet's own, and the embedded cluster's."""

from __future__ import annotations

import embedded.fault
from model.fault import Fault

FAULTS = (Fault, embedded.fault.Fault)
