"""Fields of `koord-scheduler-config` that the scheduler does not act on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kube.dialects.coverage.asking import RowsByKey, gathered
from kube.dialects.coverage.objects import ROWS
from kube.dialects.coverage.rows import Asked, CoverageRow, Surface
from kube.dialects.koordinator.schedulerconfig import arguments
from model.fault import ConfigurationFault

_ROWS = RowsByKey(row for row in ROWS if row.surface is Surface.SCHEDULER)
_OF_EVERY_OBJECT = ("apiVersion", "kind")


def in_scheduler_config(data: Mapping[str, str]) -> tuple[Asked, ...]:
    """Arguments of plugins; a document that cannot be read asks for nothing."""
    try:
        return gathered(_asked(data))
    except ConfigurationFault:
        return ()


def _asked(data: Mapping[str, str]) -> Iterator[tuple[CoverageRow, str]]:
    for plugin, args in arguments(data):
        for name, value in args.items():
            told = str(value).lower() if isinstance(value, bool) else value
            row = None if name in _OF_EVERY_OBJECT else _ROWS.first(f"{plugin}.{name}", told)
            if row is not None and row.warns:
                yield row, f"pluginConfig[{plugin}].args.{name}"
