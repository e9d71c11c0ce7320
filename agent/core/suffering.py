"""Do online pods wait for CPU, and how far is best effort cut for it?

A sign is on from its threshold and off below half of it. While one is on, best effort is cut to half of what it uses
and halved again each second. The cut ends once every sign was off for 5 s, or none on for 30 s.

Where best effort has been powerless for 10 s (at its floor, or using less than 5 % of the node) and a sign is still not
off, the wait has another cause: the cut ends, and the sign's threshold is twice what it showed then, until it was off
or for 5 min.

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


class Sign(msgspec.Struct, frozen=True):
    """One measurement that may tell of suffering: `level` is 1.0 at the threshold that counts as on."""

    key: str
    text: str
    level: float


class Grip(msgspec.Struct, frozen=True):
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


class Raised(msgspec.Struct, frozen=True):
    """A sign showed this level although best effort was powerless; times are monotonic seconds."""

    level: float
    until_seconds: float


class Suffering(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: the cut in force, since when what holds, thresholds raised, by sign.

    `calm_since` is when all signs were off, `eased_since` when none was on any more. `unconfirmed`: the brake began it,
    and no sign was on yet. Until `deaf_until_seconds` the brake is not to cut for waiting.
    """

    cap_us: int | None = None
    halved_seconds: float = 0.0
    calm_since: float | None = None
    eased_since: float | None = None
    powerless_since: float | None = None
    raised: Mapping[str, Raised] = {}
    unconfirmed: bool = False
    deaf_until_seconds: float = 0.0


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
    state: Suffering, signs: tuple[Sign, ...], grip: Grip, now: float, cut_us: int | None = None
) -> tuple[Suffering, Relief]:
    """One step at monotonic `now`; `cut_us` is what the brake cut to, since the last one, because somebody waited."""
    raised = _still_raised(state, signs, now)
    heard = tuple(_against(sign, raised) for sign in signs)
    loudest = max((sign.level for sign in heard), default=0.0)
    state = msgspec.structs.replace(state, raised=raised)
    if cut_us is not None and state.cap_us is None:
        state = msgspec.structs.replace(state, cap_us=cut_us, halved_seconds=now, unconfirmed=True)
    if loudest >= _ON or state.cap_us is not None:
        state = _step(state, loudest, grip, now)
        if _lasted(state.powerless_since, _POWERLESS_SECONDS, now):
            loud = {sign.key for sign in heard if sign.level >= _OFF}
            found = {s.key: Raised(s.level, now + _RAISED_SECONDS) for s in signs if s.key in loud}
            state = _ended(msgspec.structs.replace(state, raised={**raised, **found}), now)
    return state, _relief(state, signs, loudest, grip, now)


def _step(state: Suffering, loudest: float, grip: Grip, now: float) -> Suffering:
    cap, halved = state.cap_us, state.halved_seconds
    if cap is None:
        cap, halved = grip.half_us, now
    elif loudest >= _ON and now - halved >= _HALVING_SECONDS:
        cap, halved = max(min(cap, grip.use_us) // 2, grip.floor_us), now
    powerless = loudest >= _OFF and (cap <= grip.floor_us or grip.weak)
    calm = _since(state.calm_since, loudest < _OFF, now)
    eased = _since(state.eased_since, loudest < _ON, now)
    if _lasted(calm, _CALM_SECONDS, now) or _lasted(eased, _EASED_SECONDS, now):
        return _ended(state, now)
    return msgspec.structs.replace(
        state,
        cap_us=cap,
        halved_seconds=halved,
        calm_since=calm,
        eased_since=eased,
        powerless_since=_since(state.powerless_since, powerless, now),
        unconfirmed=state.unconfirmed and loudest < _ON,
    )


def _ended(state: Suffering, now: float) -> Suffering:
    deaf_until = now + _RAISED_SECONDS if state.unconfirmed else state.deaf_until_seconds
    return Suffering(raised=state.raised, deaf_until_seconds=deaf_until)


def _relief(after: Suffering, signs: tuple[Sign, ...], loudest: float, grip: Grip, now: float) -> Relief:
    if after.cap_us is None:
        told = _texts(sign for sign in signs if sign.level >= _ON)
        first = None if now < after.deaf_until_seconds else grip.half_us
        return Relief(disregarded=told and f"a cut does not help: {told}", first_cut_us=first)
    reason = Reason.ONLINE_SUFFERING if loudest >= _ON else Reason.ONLINE_RECOVERING
    note = _texts(sign for sign in signs if sign.level >= _OFF) or "not any more"
    return Relief(after.cap_us, reason, note, first_cut_us=after.cap_us)


def _still_raised(state: Suffering, signs: Iterable[Sign], now: float) -> dict[str, Raised]:
    loud = {sign.key for sign in signs if sign.level >= _OFF}
    return {key: raised for key, raised in state.raised.items() if key in loud and now < raised.until_seconds}


def _against(sign: Sign, raised: Mapping[str, Raised]) -> Sign:
    """The sign's level against the threshold in force."""
    found = raised.get(sign.key)
    return Sign(sign.key, sign.text, sign.level / max(2 * found.level, 1.0)) if found else sign


def _since(before: float | None, holds: bool, now: float) -> float | None:
    return (now if before is None else before) if holds else None


def _lasted(since: float | None, seconds: float, now: float) -> bool:
    return since is not None and now - since >= seconds


def _texts(signs: Iterable[Sign]) -> str:
    """The loudest three."""
    loudest = sorted(signs, key=lambda sign: (-sign.level, sign.key))
    return "; ".join(sign.text for sign in loudest[:3])
