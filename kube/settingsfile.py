"""A program's settings file: YAML or JSON, checked against the program's own Struct."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from kube.yamldocuments import yaml_document
from model.fault import ConfigurationFault

T = TypeVar("T", bound=msgspec.Struct)


def read_settings(path: Path | None, kind: type[T]) -> T:
    """What the file says; None, or one that says nothing, gives the defaults.

    Raises ConfigurationFault naming the file, the field and what it must be.
    """
    if path is None:
        return kind()
    try:
        found: T | None = msgspec.convert(yaml_document(path.read_bytes()), kind | None)
    except OSError as error:
        raise ConfigurationFault(str(path), f"cannot be read: {error.strerror}", "check --settings") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ConfigurationFault(str(path), str(error), "docs/settings.md lists fields, ranges and defaults") from error
    return kind() if found is None else found
