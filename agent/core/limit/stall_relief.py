"""Stall relief: do online pods, or the node's services, wait for CPU, and how far is best effort cut for it?

A sign is on from its threshold and off below half of it. While one is on, best effort is cut to half of what it uses
and halved again each second. The cut ends once every sign was off for 5 s, or none on for 30 s.

Where online pods waited for 10 s of one cut, lulls not counted, while best effort was powerless (at its floor, or using
less than 5 % of the node), the wait has another cause: the cut ends, and the threshold of each sign that is not off is
twice what it showed then, for 5 min or until it was off for 5 s. A new try that is as futile doubles the 5 min, up to
an hour.

A sign that a pod's own limit makes may come and go with the pod's own work, so that no cut lasts long enough to be
told futile. Where such signs alone began five cuts in ten minutes, whosever they are, the next are raised in the same
way, and stay so through lulls.

The brake may cut first, on the kernel's word. Where no sign comes on after that, the word was noise: it is not asked
again for 5 min.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from model.reason import Reason

_ON, _OFF = 1.0, 0.5
_CALM_SECONDS = 5.0
_EASED_SECONDS = 30.0
_HALVING_SECONDS = 0.9
"""A second, less what a tick may come early."""
_POWERLESS_SECONDS = 10.0
_POWERLESS_PCT = 5
_RAISED_SECONDS = 300.0
_LONGEST_RAISED_SECONDS = 3600.0
_IGNORED_SECONDS = 300.0
_MOST_BEGUN, _BEGUN_SECONDS = 5, 600.0


class StallSignal(msgspec.Struct, frozen=True):
    """One measurement that may tell of a stall: `level` is 1.0 at the threshold that counts as on.

    `own_limit`: it is the pod's own limit that shows in it.
    """

    key: str
    text: str
    level: float
    own_limit: bool = False


class CutRange(msgspec.Struct, frozen=True):
    """What cutting best effort can do: its use now, its floor and the node, in us per quota period."""

    use_us: int
    floor_us: int
    node_us: int

    @property
    def half_us(self) -> int:
        """The first cut."""
        return max(self.use_us // 2, self.floor_us)

    @property
    def weak(self) -> bool:
        """Best effort uses too little to be anybody's trouble."""
        return self.use_us * 100 < self.node_us * _POWERLESS_PCT


class RaisedThreshold(msgspec.Struct, frozen=True):
    """A sign showed this level although best effort was powerless; times are monotonic seconds.

    The threshold is raised for `for_seconds` until `until_seconds`; what comes of a new try after that is judged by it.
    `quiet_since` is when the sign was last seen to go off, `calm_seconds` for how long it is remembered then.
    """

    level: float
    until_seconds: float
    for_seconds: float = _RAISED_SECONDS
    quiet_since: float | None = None
    calm_seconds: float = _CALM_SECONDS


class ReliefMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: the cut in force, since when what holds, thresholds raised, by sign.

    `calm_since` is when all signs were off, `eased_since` when none was on any more, `stepped_seconds` the last step of
    the cut; for `powerless_seconds` of it online pods waited although best effort was powerless. `unconfirmed`: the
    brake began it, and no sign was on yet. Until `ignored_until_seconds` the brake is not to cut for waiting. `begun`:
    when signs of pods' own limits alone began a cut.
    """

    cap_us: int | None = None
    halved_seconds: float = 0.0
    stepped_seconds: float = 0.0
    calm_since: float | None = None
    eased_since: float | None = None
    powerless_seconds: float = 0.0
    raised: Mapping[str, RaisedThreshold] = {}
    unconfirmed: bool = False
    ignored_until_seconds: float = 0.0
    begun: tuple[float, ...] = ()

    def disregards(self, key: str, now: float) -> bool:
        """The sign's threshold is a raised one at monotonic `now`."""
        return key in self.raised and now < self.raised[key].until_seconds


class Relief(msgspec.Struct, frozen=True):
    """What follows: best effort gets at most `cap_us`; `reason` is why nothing is raised, `note` what was seen.

    `first_cut_us` is what may be written at once when somebody starts to suffer before the next decision, if anything.
    `disregarded` tells of signs over their threshold that a cut does not help.
    """

    cap_us: int | None = None
    reason: Reason | None = None
    note: str = ""
    disregarded: str = ""
    first_cut_us: int | None = None


CALM = Relief()


def relieve(
    state: ReliefMemory, signs: tuple[StallSignal, ...], cut_range: CutRange, now: float, cut_us: int | None = None
) -> tuple[ReliefMemory, Relief]:
    """One step at monotonic `now`; `cut_us` is what the brake cut to, since the last one, because somebody waited."""
    state = msgspec.structs.replace(state, raised=_remembered(state, signs, now))
    judged = tuple(_against(sign, state, now) for sign in signs)
    highest = max((sign.level for sign in judged), default=0.0)
    if cut_us is not None and state.cap_us is None:
        state = msgspec.structs.replace(state, cap_us=cut_us, halved_seconds=now, stepped_seconds=now, unconfirmed=True)
    if state.cap_us is None and (again := _begun_again(state, judged, now)) is not None:
        state = again
        judged = tuple(_against(sign, state, now) for sign in signs)
        highest = max((sign.level for sign in judged), default=0.0)
    if highest >= _ON or state.cap_us is not None:
        state = _step(state, highest, cut_range, now)
        if state.powerless_seconds >= _POWERLESS_SECONDS:
            not_off = {sign.key for sign in judged if sign.level >= _OFF}
            found = {s.key: _futile(s, state.raised.get(s.key), now) for s in signs if s.key in not_off}
            state = _ended(msgspec.structs.replace(state, raised={**state.raised, **found}), now)
    return state, _relief(state, signs, highest, cut_range, now)


def _begun_again(state: ReliefMemory, judged: tuple[StallSignal, ...], now: float) -> ReliefMemory | None:
    """A cut begins because of own limits alone: what is remembered of that, thresholds raised where it is too often.

    None where none begins, or somebody else's sign is on, too.
    """
    on = [sign for sign in judged if sign.level >= _ON]
    if not on or not all(sign.own_limit for sign in on):
        return None
    begun = (*(at for at in state.begun if now - at < _BEGUN_SECONDS), now)
    raised = {
        sign.key: msgspec.structs.replace(_futile(sign, state.raised.get(sign.key), now), calm_seconds=_BEGUN_SECONDS)
        for sign in (on if len(begun) > _MOST_BEGUN else ())
    }
    return msgspec.structs.replace(state, begun=begun, raised={**state.raised, **raised})


def _step(state: ReliefMemory, highest: float, cut_range: CutRange, now: float) -> ReliefMemory:
    cap, halved = state.cap_us, state.halved_seconds
    powerless = highest >= _OFF and cap is not None and (cap <= cut_range.floor_us or cut_range.weak)
    if cap is None:
        cap, halved = cut_range.half_us, now
    elif highest >= _ON and now - halved >= _HALVING_SECONDS:
        cap, halved = max(min(cap, cut_range.use_us) // 2, cut_range.floor_us), now
    calm = _since(state.calm_since, highest < _OFF, now)
    eased = _since(state.eased_since, highest < _ON, now)
    if _lasted(calm, _CALM_SECONDS, now) or _lasted(eased, _EASED_SECONDS, now):
        return _ended(state, now)
    return msgspec.structs.replace(
        state,
        cap_us=cap,
        halved_seconds=halved,
        stepped_seconds=now,
        calm_since=calm,
        eased_since=eased,
        powerless_seconds=state.powerless_seconds + (now - state.stepped_seconds if powerless else 0.0),
        unconfirmed=state.unconfirmed and highest < _ON,
    )


def _ended(state: ReliefMemory, now: float) -> ReliefMemory:
    ignored_until = now + _IGNORED_SECONDS if state.unconfirmed else state.ignored_until_seconds
    return ReliefMemory(raised=state.raised, ignored_until_seconds=ignored_until, begun=state.begun)


def _relief(
    after: ReliefMemory, signs: tuple[StallSignal, ...], highest: float, cut_range: CutRange, now: float
) -> Relief:
    if after.cap_us is None:
        told = _texts(sign for sign in signs if sign.level >= _ON)
        first = None if now < after.ignored_until_seconds else cut_range.half_us
        return Relief(disregarded=told and f"a cut does not help: {told}", first_cut_us=first)
    reason = Reason.ONLINE_SUFFERING if highest >= _ON else Reason.ONLINE_RECOVERING
    note = _texts(sign for sign in signs if sign.level >= _OFF) or "not any more"
    return Relief(after.cap_us, reason, note, first_cut_us=after.cap_us)


def _remembered(state: ReliefMemory, signs: Iterable[StallSignal], now: float) -> dict[str, RaisedThreshold]:
    """Without what was off for long enough: a service that waits in bursts has lulls, too."""
    not_off = {sign.key for sign in signs if sign.level >= _OFF}
    seen = {
        key: msgspec.structs.replace(raised, quiet_since=_since(raised.quiet_since, key not in not_off, now))
        for key, raised in state.raised.items()
    }
    return {key: raised for key, raised in seen.items() if not _lasted(raised.quiet_since, raised.calm_seconds, now)}


def _futile(sign: StallSignal, before: RaisedThreshold | None, now: float) -> RaisedThreshold:
    """Twice as long as the time before, if there was one."""
    seconds = min(2 * before.for_seconds, _LONGEST_RAISED_SECONDS) if before else _RAISED_SECONDS
    return RaisedThreshold(sign.level, now + seconds, seconds)


def _against(sign: StallSignal, state: ReliefMemory, now: float) -> StallSignal:
    """The sign's level against the threshold in force."""
    if not state.disregards(sign.key, now):
        return sign
    level = sign.level / max(2 * state.raised[sign.key].level, 1.0)
    return StallSignal(sign.key, sign.text, level, sign.own_limit)


def _since(before: float | None, holds: bool, now: float) -> float | None:
    return (now if before is None else before) if holds else None


def _lasted(since: float | None, seconds: float, now: float) -> bool:
    return since is not None and now - since >= seconds


def _texts(signs: Iterable[StallSignal]) -> str:
    """The highest three."""
    highest = sorted(signs, key=lambda sign: (-sign.level, sign.key))
    return "; ".join(sign.text for sign in highest[:3])
