"""`--restore`: every control file says again, byte for byte, what it said before the first agent wrote it."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Mapping

import msgspec
import structlog
from msgspec.structs import replace

from agent.core.limit.steps import steps
from agent.core.observe.knobs import IDLE_FILE, is_of_kubelet, value_of
from agent.core.observe.observation import Absence, Knob, Missing
from agent.files.controlfiles import ControlFiles, KnobText
from model.fault import KernelFault

log = structlog.get_logger()

_WEIGHTS = ("cpu.shares", "cpu.weight")


class Restored(msgspec.Struct, frozen=True):
    """How many control files were changed back, held their original already, or are gone with their cgroup."""

    changed: int = 0
    unchanged: int = 0
    gone: int = 0

    def __str__(self) -> str:
        files = f"{self.changed} control file{'' if self.changed == 1 else 's'} restored"
        return f"{files}, {self.unchanged} held the original already, {self.gone} gone with their cgroups"


def restore(files: ControlFiles, originals: Mapping[Knob, str]) -> Restored:
    """Put every text back, in an order the kernel accepts.

    Raises KernelFault naming the first one the kernel refused, after all others were put back.
    """
    before = {knob: files.held(knob) for knob in originals}
    originals = {knob: text for knob, text in originals.items() if not _is_of_kubelet(knob, before[knob])}
    before = {knob: before[knob] for knob in originals}
    values = {knob: held.value for knob, held in before.items() if isinstance(held, KnobText)}
    for step in steps({knob: value_of(knob, text.encode()) for knob, text in originals.items()}, values):
        # What is refused here is tried once more below, and told of.
        with contextlib.suppress(OSError):
            files.put(step.knob, step.value)
    errors = {knob: put_back(files, knob, text, before[knob]) for knob, text in originals.items()}
    for knob, error in errors.items():
        if error:
            raise KernelFault(
                str(files.path(knob)), f"{originals[knob]!r} was refused: {error}", "mend it, restore again"
            )
    return _counted(originals, before)


def _is_of_kubelet(knob: Knob, held: KnobText | Missing) -> bool:
    """A pod was resized since: what was granted before is nobody's word any more."""
    return isinstance(held, KnobText) and is_of_kubelet(knob, held.value)


def put_back(files: ControlFiles, knob: Knob, text: str, before: KnobText | Missing) -> str:
    """Empty when the file says `text` now, or is gone; else what went wrong. An equal value may be another text."""
    held, error = files.held(knob), ""
    if isinstance(held, KnobText) and held.value == text == "":
        # What stands for an empty list, where the kernel takes none.
        text = held.text
    if isinstance(held, KnobText) and held.text != text:
        try:
            _put(files, knob, text)
        except OSError as refused:
            error = refused.strerror or str(refused)
        held = files.held(knob)
    if isinstance(held, Missing) and held.absence is Absence.GONE:
        log.info("nothing to restore", path=held.path, detail=held.detail)
        return ""
    if isinstance(held, Missing) or held.text != text:
        return error or f"the kernel holds {held.detail if isinstance(held, Missing) else held.text}"
    was = before.text if isinstance(before, KnobText) else before.detail
    if was != text:
        log.info("restored", path=str(files.path(knob)), was=was, now=text)
    return ""


def _put(files: ControlFiles, knob: Knob, text: str) -> None:
    """The kernel takes no weight of a cgroup that is idle, which whoever is root in a container may make its own.

    Raises OSError.
    """
    try:
        files.put_text(knob, text)
    except OSError as refused:
        if refused.errno != errno.EINVAL or knob.file not in _WEIGHTS:
            raise
        files.put_text(replace(knob, file=IDLE_FILE), "0")
        files.put_text(knob, text)


def _counted(originals: Mapping[Knob, str], before: Mapping[Knob, KnobText | Missing]) -> Restored:
    unchanged = sum(isinstance(held, KnobText) and held.text == originals[knob] for knob, held in before.items())
    gone = sum(isinstance(held, Missing) for held in before.values())
    return Restored(len(before) - unchanged - gone, unchanged, gone)
