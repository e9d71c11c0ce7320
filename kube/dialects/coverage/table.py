"""The table: how far each field of Koordinator's API is acted on. What becomes honoured is one row changed here.

Admission's warnings, the node's condition, the Event on slo-controller-config, docs/koordinator.md and the README's
short table all come from it.
"""

from __future__ import annotations

from kube.dialects.coverage import objects, pods, settings

ROWS = (*settings.ROWS, *pods.ROWS, *objects.ROWS)
