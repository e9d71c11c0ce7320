"""Raised quotas: those of online pods that were above their limit for a moment, back at it once nobody steps them."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from agent.core.limit.ownership import looser
from agent.core.observe.knobs import UNLIMITED, is_granted, is_online_quota, value_of
from agent.core.observe.observation import Knob
from agent.files.controlfiles import ControlFiles, KnobText

log = structlog.get_logger()


def lower_raised(files: ControlFiles, originals: Mapping[Knob, str]) -> int:
    """What holds a value of ours above its original says that again; how many. What the kubelet wrote since stays.

    Containers first, since no quota may exceed the one above it. Never raises: what is refused is told of.
    """
    lowered = 0
    for knob in sorted(filter(is_online_quota, originals), key=lambda knob: -knob.cgroup.count("/")):
        held = files.held(knob)
        if isinstance(held, KnobText) and _is_raised(held.value, value_of(knob, originals[knob].encode())):
            try:
                files.put_text(knob, originals[knob])
                lowered += 1
            except OSError as error:
                log.warning("a raised quota stays", path=str(files.path(knob)), error=error.strerror)
    return lowered


def _is_raised(held: object, original: object) -> bool:
    """A quota of ours is no whole milli-CPU."""
    if not isinstance(held, int) or not isinstance(original, int) or held == UNLIMITED or is_granted(held):
        return False
    return looser(held, original)
