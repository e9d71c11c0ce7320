"""Write steps: the order in which the kernel accepts every change and nobody has too much in between.

1  v1 quotas below the root that become unlimited (no quota may exceed the one above it), and `cpu.idle` that ends
   (no weight can be written while it is set)
2  what narrows, from the leaves up; bursts before the quotas, which the kernel lets sink to them at most
3  v1 CPU lists, twice: the old and the new CPUs from the root down, the new ones alone from the leaves up
   (a cgroup holds every CPU of its children, always)
4  what widens, from the root down
5  v1 quotas that were unlimited, below a root that is limited by now
6  bursts that widen, within their quotas by now
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum

import msgspec

from agent.core.limit.ownership import gives_more, looser
from agent.core.observe.knobs import IDLE_FILE, UNLIMITED, is_burst, is_v1_cpuset, is_v1_quota, same
from agent.core.observe.observation import Knob, Value
from model.topology import format_cpus, parse_cpus


class WriteStep(msgspec.Struct, frozen=True):
    """One write of many: the knob goes from `previous` to `value`."""

    knob: Knob
    value: Value
    previous: Value

    @property
    def widens(self) -> bool:
        """The cgroup may use more afterwards."""
        return gives_more(self.knob, self.value, self.previous)


class _Phase(IntEnum):
    """As above; v1 CPU lists have two."""

    RELEASE = 1
    BURST_LESS = 2
    NARROW = 3
    FIT = 4
    SHRINK = 5
    WIDEN = 6
    LIMIT = 7
    BURST_MORE = 8


_FROM_THE_ROOT = (_Phase.FIT, _Phase.WIDEN, _Phase.LIMIT, _Phase.BURST_MORE)


def steps(wanted: Mapping[Knob, Value], current: Mapping[Knob, Value]) -> tuple[WriteStep, ...]:
    """From what the kernel holds to what is wanted; knobs that were not read are left alone."""
    top = min((knob.cgroup.count("/") for knob in wanted if is_v1_quota(knob)), default=0)
    changes = (
        step for knob, value in wanted.items() if knob in current for step in _changes(knob, value, current[knob])
    )
    return tuple(sorted(changes, key=_order(top)))


def out_of_the_way(knob: Knob, value: Value, below: Mapping[Knob, Value]) -> dict[Knob, Value]:
    """What the same knob of all cgroups `below` must hold before cgroup v1 lets `knob` shrink to `value`.

    A CPU list that shares nothing with it becomes what its parent's becomes.
    """
    if not is_v1_cpuset(knob):
        return {child: UNLIMITED for child, current in below.items() if current != UNLIMITED and looser(current, value)}
    cpus = set(parse_cpus(str(value)))
    fitted: dict[str, set[int]] = {}
    for child in sorted(below):
        above, own = fitted.get(child.cgroup.rsplit("/", 1)[0], cpus), set(parse_cpus(str(below[child])))
        fitted[child.cgroup] = own & above or (above if own else own)
    kept = {child: format_cpus(fitted[child.cgroup]) for child in below}
    return {child: fit for child, fit in kept.items() if fit != below[child]}


def _changes(knob: Knob, wanted: Value, current: Value) -> Iterable[WriteStep]:
    if same(knob, current, wanted):
        return ()
    if not is_v1_cpuset(knob):
        return (WriteStep(knob, wanted, current),)
    both = format_cpus({*parse_cpus(str(current)), *parse_cpus(str(wanted))})
    return (WriteStep(knob, cpus, before) for cpus, before in ((both, current), (wanted, both)) if cpus != before)


def _order(top: int) -> Callable[[WriteStep], tuple[int, int, Knob]]:
    def key(step: WriteStep) -> tuple[int, int, Knob]:
        phase, depth = _phase(step, top), step.knob.cgroup.count("/")
        return (phase, depth if phase in _FROM_THE_ROOT else -depth, step.knob)

    return key


def _phase(step: WriteStep, top: int) -> _Phase:
    """`top` is the depth of the uppermost v1 quota."""
    knob = step.knob
    if is_v1_cpuset(knob):
        return _Phase.FIT if step.widens else _Phase.SHRINK
    if is_burst(knob):
        return _Phase.BURST_MORE if step.widens else _Phase.BURST_LESS
    if knob.file == IDLE_FILE and step.widens:
        return _Phase.RELEASE
    if is_v1_quota(knob) and knob.cgroup.count("/") > top:
        if step.value == UNLIMITED:
            return _Phase.RELEASE
        if step.previous == UNLIMITED:
            return _Phase.LIMIT
    return _Phase.WIDEN if step.widens else _Phase.NARROW
