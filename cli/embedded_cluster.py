"""The cluster that `sublet up` runs on this machine, for commands that also work without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cli.faults import missing_part
from model.fault import ConfigurationFault

if TYPE_CHECKING:
    from local.rundir import Endpoints


def read_endpoints(directory: Path) -> Endpoints:
    """Raises ConfigurationFault where none runs there, as where it is not installed at all."""
    try:
        from local.rundir import read_endpoints as read
    except ModuleNotFoundError as error:
        if not missing_part(error):
            raise
        fix = "it is not installed here: name a cluster or an address"
        raise ConfigurationFault(str(directory), "no embedded cluster runs here", fix) from None
    return read(directory)
