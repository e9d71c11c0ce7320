"""PyTorch: the state of modules, optimizers and schedulers as one file of a checkpoint; only where it is installed."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

from sublet_sdk.checkpoints import Loaded
from sublet_sdk.faults import CorruptCheckpoint, SettingFault

FILE = "torch.pt"


def capture(**parts: Any) -> dict[str, bytes]:
    """The `state_dict` of each part, by name: `capture(model=model, optimizer=optimizer)`.

    :raises SettingFault: PyTorch is not installed
    """
    stream = io.BytesIO()
    _torch().save({name: part.state_dict() for name, part in parts.items()}, stream)
    return {FILE: stream.getvalue()}


def restore(loaded: Loaded, map_location: Any = "cpu", **parts: Any) -> None:
    """Gives each part the state that was captured by its name; nothing but tensors and plain values is unpickled.

    :raises SettingFault: PyTorch is not installed
    :raises CorruptCheckpoint: the checkpoint has no state of that name
    """
    torch = _torch()
    if FILE not in loaded.files:
        raise CorruptCheckpoint(f"checkpoint {loaded.checkpoint.id} of {loaded.checkpoint.job} has no file {FILE}")
    states = torch.load(io.BytesIO(loaded.files[FILE]), map_location=map_location, weights_only=True)
    if missing := sorted(parts.keys() - states.keys()):
        raise CorruptCheckpoint(
            f"checkpoint {loaded.checkpoint.id} of {loaded.checkpoint.job} has no state of {', '.join(missing)}"
        )
    for name, part in parts.items():
        part.load_state_dict(states[name])


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as fault:
        raise SettingFault("torch", "is not installed", "install PyTorch, or give files of your own") from fault
