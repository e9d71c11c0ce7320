"""Requests about pods: told, sent, answered; never before the record is safe, never more than agreed."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from agent.core.evict.eviction_request import (
    EvictionOutcome,
    EvictionRecord,
    EvictionRequest,
    EvictionRequestKind,
    OutcomeKind,
    PendingVictim,
)
from agent.core.evict.messages import ANNOTATION
from agent.core.evict.request_queue import BOUND, LONGEST_SECONDS
from agent.core.limit.watch import Kill, PreparedVictim
from agent.edge.evictor import ApiEvictor, EvictorContext
from embedded.tests.apiserver.conftest import Live
from kube.client import KubeClient
from kube.dialects.sublet.preemption_notice import standing_notice, withdrawal
from kube.events import EventRecorder, ObjectRef
from model.decision import Decision, Term, Unit
from model.pod.colocation import StandingNotice
from model.reason import Reason
from model.report import PreemptionNotice
from tests.kube.conftest import ScriptedServer, says

NODE = ObjectRef(kind="Node", name="n", uid="uid-n")
POD = "/api/v1/namespaces/default/pods/a"
EVICTION = f"{POD}/eviction"
KEPT = EvictionRecord(memory_at_seconds=1.0)
FAILED, GONE, BLOCKED = OutcomeKind.FAILED, OutcomeKind.GONE, OutcomeKind.BLOCKED
EVICTED, NOTIFIED = OutcomeKind.EVICTED, OutcomeKind.NOTIFIED

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def request(
    name: str = "a", kind: EvictionRequestKind = EvictionRequestKind.EVICT, uid: str = "", **more: Any
) -> EvictionRequest:
    reason = Reason.BE_MEMORY_EVICT
    decision = Decision(
        f"pod/default/{name}", "evict", 1024, Unit.BYTES, reason, (Term("memory", 1024),), at_seconds=100.0
    )
    return EvictionRequest(kind, uid or f"uid-{name}", "default", name, decision, **more)


def notice(name: str = "a") -> EvictionRequest:
    return request(name, EvictionRequestKind.NOTIFY, deadline_seconds=130.0)


def refusal(status: int, reason: str = "", message: str = "no", **details: Any) -> Answer:
    return says({"kind": "Status", "reason": reason, "message": message, "details": details}, status)


def plain(status: int, text: str = "no", **headers: str) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return answer


class Told(EventRecorder):
    """Keeps Events instead of posting them."""

    def __init__(self, client: KubeClient) -> None:
        super().__init__(client, "sublet-agent", "n")
        self.events: list[tuple[str, str, str, bool]] = []

    def record(self, about: ObjectRef, reason: str, message: str, *, warning: bool = False) -> None:
        self.events.append((f"{about.kind}/{about.name}/{about.uid}", reason, message, warning))


class Rig:
    """An evictor with everything around it. `saves` are the records on the disk; `steps` mixes saves and requests."""

    def __init__(self, client: KubeClient) -> None:
        self.now = 0.0
        self.told = Told(client)
        self.notices: list[PreemptionNotice] = []
        self.spared: list[str] = []
        self.saves: list[EvictionRecord] = []
        self.disk_error: OSError | None = None
        self.before_save: Callable[[], None] = lambda: None
        self.outcomes: list[EvictionOutcome] = []
        self._client = client
        self.evictor = self.make()

    def make(self, **more: Any) -> ApiEvictor:
        around = EvictorContext(
            self.told,
            lambda: NODE,
            self.notices.append,
            self.spared.append,
            self._save,
            lambda: 1000.0 + self.now,
            lambda: self.now,
        )
        self.evictor = ApiEvictor(self._client, around, **more)
        return self.evictor

    def _save(self, record: EvictionRecord) -> None:
        self.before_save()
        if self.disk_error is not None:
            raise self.disk_error
        self.saves.append(record)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Time passes as it does, unless a test has set it."""
        async with asyncio.timeout(20):
            while not condition():
                self.outcomes += self.evictor.drain()
                await asyncio.sleep(0.005)

    async def answered(self, count: int = 1) -> list[EvictionOutcome]:
        """The next outcomes."""
        self.outcomes += self.evictor.drain()
        await self.until(lambda: len(self.outcomes) >= count)
        taken, self.outcomes = self.outcomes, []
        return taken


class World:
    """A scripted API server: answers by method and path, 200 for the rest."""

    def __init__(self, folder: Path) -> None:
        self.server = ScriptedServer(folder)
        self.answers: dict[tuple[str, str], list[Answer]] = {}

    def on(self, method: str, path: str, *answers: Answer) -> None:
        """In turn, the last one for ever."""
        self.answers[method, path] = list(answers)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        scripted = self.answers.get((request.method, request.path), [says({})])
        return await (scripted.pop(0) if len(scripted) > 1 else scripted[0])(request)

    @property
    def seen(self) -> list[tuple[str, str]]:
        return [request[:2] for request in self.server.requests]

    def play(self, scene: Callable[[Rig], Awaitable[None]], **more: Any) -> Rig:
        async def play() -> Rig:
            client = await self.server.start()
            self.server.answers = [self._route]
            rig = Rig(client)
            rig.make(**more)
            running = asyncio.create_task(rig.evictor.run())
            try:
                await scene(rig)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                await client.close()
                await self.server.stop()
            return rig

        return asyncio.run(play())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_pod_is_told_and_evicted(world: World) -> None:
    """Annotation, then the Eviction of just that pod; Events on pod and node; counted."""

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((request(),), KEPT)
        (outcome,) = await rig.answered()
        assert outcome == EvictionOutcome("uid-a", EVICTED, 1000.0)

    rig = world.play(scene)
    (patched, posted) = world.server.requests
    assert patched[:2] == ("PATCH", POD) and posted[:2] == ("POST", EVICTION)
    assert patched[3]["metadata"]["uid"] == "uid-a"
    assert json.loads(patched[3]["metadata"]["annotations"][ANNOTATION])["decision"]["reason"] == "BEMemoryEvict"
    assert posted[3] == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": "default"},
        "deleteOptions": {"preconditions": {"uid": "uid-a"}},
    }
    assert [(about, reason, warning) for about, reason, _, warning in rig.told.events] == [
        ("Pod/a/uid-a", "BEMemoryEvict", True),
        ("Node/n/uid-n", "BEMemoryEvict", True),
    ]
    assert dict(rig.evictor.evictions) == {("BEMemoryEvict", "evicted"): 1} and rig.saves == [KEPT]


def test_a_shortened_grace_is_sent(world: World) -> None:
    """Zero too."""

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((request(grace_seconds=0),), KEPT)
        await rig.answered()

    world.play(scene)
    assert world.server.requests[1][3]["deleteOptions"]["gracePeriodSeconds"] == 0


BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
OTHER_UID = "the UID in the precondition (x) does not match the UID in record (y)."
CAUSE = {"reason": "DisruptionBudget", "message": "The disruption budget b needs 2 healthy pods"}
ANSWERS = {
    "budget": (refusal(429, "TooManyRequests", BUDGET, causes=[CAUSE]), BLOCKED, 0.0, "budget b needs 2"),
    "budget not read yet": (refusal(429, "TooManyRequests", BUDGET, retryAfterSeconds=10), BLOCKED, 10.0, "429"),
    "budget with a header": (
        lambda r: _with_header(refusal(429, "TooManyRequests", BUDGET, retryAfterSeconds=10), r, "7"),
        BLOCKED,
        7.0,
        "429",
    ),
    "two budgets": (
        refusal(500, "InternalError", "This pod has more than one PodDisruptionBudget, which is not supported."),
        BLOCKED,
        0.0,
        "500",
    ),
    "gone": (refusal(404, "NotFound"), GONE, 0.0, "404"),
    "made again": (refusal(409, "Conflict", OTHER_UID), GONE, 0.0, "409"),
    "made again, as the store says": (
        refusal(409, "Conflict", "Precondition failed: UID in precondition: x, UID in object meta: y"),
        GONE,
        0.0,
        "409",
    ),
    "forbidden": (refusal(403, "Forbidden"), FAILED, 0.0, "403"),
}


async def _with_header(answer: Answer, request: web.Request, seconds: str) -> web.StreamResponse:
    response = await answer(request)
    response.headers["Retry-After"] = seconds
    return response


@pytest.mark.parametrize(("answer", "kind", "wait", "detail"), ANSWERS.values(), ids=ANSWERS)
def test_what_an_answer_means(world: World, answer: Answer, kind: OutcomeKind, wait: float, detail: str) -> None:
    """One request, one outcome with the server's words; a pod that lives on carries the outcome."""
    world.on("POST", EVICTION, answer)

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((request(),), KEPT)
        (outcome,) = await rig.answered()
        assert (outcome.kind, outcome.retry_after_seconds) == (kind, wait) and detail in outcome.detail
        await rig.until(lambda: rig.evictor.waiting == 0)

    rig = world.play(scene)
    assert world.seen.count(("POST", EVICTION)) == 1
    patches = [
        body["metadata"]["annotations"][ANNOTATION] for method, _, _, body in world.server.requests if method == "PATCH"
    ]
    assert [json.loads(told).get("outcome") for told in patches] == [None] + ([] if kind is GONE else [kind.value])
    assert bool(rig.told.events) == (kind is BLOCKED)
    assert all(CAUSE["message"] in text for _, _, text, _ in rig.told.events if "budget b" in detail)


PATCHES = {
    "gone": (refusal(404, "NotFound"), GONE),
    "made again": (
        refusal(422, "Invalid", 'Pod "a" is invalid: metadata.uid: Invalid value: field is immutable'),
        GONE,
    ),
    "made again, as a conflict": (refusal(409, "Conflict", "Precondition failed: UID in precondition: x"), GONE),
    "annotation refused": (refusal(403, "Forbidden"), EVICTED),
    "annotation invalid": (refusal(422, "Invalid", "metadata.annotations: Too long"), EVICTED),
    "a webhook fails": (refusal(500, "InternalError", "failed calling webhook"), EVICTED),
    "overloaded": (plain(429), EVICTED),
}


@pytest.mark.parametrize(("answer", "kind"), PATCHES.values(), ids=PATCHES)
def test_a_pod_that_cannot_be_annotated(world: World, answer: Answer, kind: OutcomeKind) -> None:
    """One that is gone is left alone; a refused annotation does not keep the node short of memory."""
    world.on("PATCH", POD, answer)

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((request(),), KEPT)
        (outcome,) = await rig.answered()
        assert outcome.kind is kind

    world.play(scene)
    assert world.seen.count(("POST", EVICTION)) == (kind is EVICTED)


TRANSIENT = {
    "overloaded": plain(429, "Too many requests, please try again later.", Retry_After="0"),
    "token expired": refusal(401, "Unauthorized"),
    "conflict": refusal(409, "Conflict", "the object has been modified"),
    "error": plain(500),
    "away": plain(503),
}


@pytest.mark.parametrize("answer", TRANSIENT.values(), ids=TRANSIENT)
def test_what_may_pass_is_tried_again(world: World, answer: Answer) -> None:
    """No outcome until there is one."""
    world.on("POST", EVICTION, answer, says({}, 201))

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((request(),), KEPT)
        await rig.until(lambda: rig.evictor.retries == 1)
        assert not rig.outcomes and rig.evictor.waiting == 1
        rig.now = 0.5
        (outcome,) = await rig.answered()
        assert outcome.kind is EVICTED

    world.play(scene)
    assert world.seen.count(("POST", EVICTION)) == 2


def test_a_webhook_that_does_not_answer(world: World) -> None:
    """The eviction waits for the annotation, but not long."""
    going = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        await going.wait()
        return web.Response(text="{}")

    world.on("PATCH", POD, silent)

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((request(),), KEPT)
        (outcome,) = await rig.answered()
        assert outcome.kind is EVICTED
        going.set()

    world.play(scene)


def test_an_absent_server_and_an_old_order(world: World) -> None:
    """Nobody answers: the request waits, and after a minute the tick is to decide again."""

    async def scene(rig: Rig) -> None:
        await world.server.stop()
        rig.evictor.submit((request(),), KEPT)
        await rig.until(lambda: rig.evictor.retries == 1)
        assert not rig.outcomes
        rig.now = LONGEST_SECONDS
        (outcome,) = await rig.answered()
        assert outcome.kind is FAILED and "60 s" in outcome.detail and rig.evictor.waiting == 0
        await world.server.start()

    rig = world.play(scene)
    assert rig.told.events == []


def test_one_pods_trouble_is_not_anothers(world: World) -> None:
    """Requests that wait leave their place to the ones behind them."""
    names = "abcde"
    for name in names[:4]:
        world.on("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", plain(500))

    async def scene(rig: Rig) -> None:
        rig.evictor.submit(tuple(request(name) for name in names), KEPT)
        (outcome,) = await rig.answered()
        assert (outcome.uid, outcome.kind) == ("uid-e", EVICTED)

    world.play(scene)


def test_four_at_a_time(world: World) -> None:
    """More wait their turn, and get it."""
    names, here, most = "abcdefg", 0, 0
    going = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        nonlocal here, most
        here += 1
        most = max(most, here)
        await going.wait()
        here -= 1
        return web.Response(status=201, text="{}")

    for name in names:
        world.on("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", slow)

    async def scene(rig: Rig) -> None:
        rig.evictor.submit(tuple(request(name) for name in names), KEPT)
        await rig.until(lambda: here == 4)
        assert rig.evictor.waiting == 7
        going.set()
        assert {outcome.kind for outcome in await rig.answered(7)} == {EVICTED}

    world.play(scene)
    assert most == 4


def test_a_newer_order_waits_for_the_one_in_flight(world: World) -> None:
    """Two about one pod are never under way at once; the newer one, with less grace, follows."""
    going = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await going.wait()
        return web.Response(status=201, text="{}")

    world.on("POST", EVICTION, slow, says({}, 201))

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((request(),), KEPT)
        await rig.until(lambda: ("POST", EVICTION) in world.seen)
        rig.evictor.submit((request(grace_seconds=1),), KEPT)
        await asyncio.sleep(0.05)
        assert len(world.seen) == 2
        going.set()
        assert [outcome.kind for outcome in await rig.answered(2)] == [EVICTED, EVICTED]

    world.play(scene)
    assert world.server.requests[3][3]["deleteOptions"]["gracePeriodSeconds"] == 1


def test_nothing_leaves_before_the_record_is_safe(world: World) -> None:
    """A request that comes while the disk is busy waits for the record that came with it."""
    first, second = EvictionRecord(memory_at_seconds=1.0), EvictionRecord(memory_at_seconds=2.0)
    disk, at_save = threading.Event(), list[int]()

    async def scene(rig: Rig) -> None:
        def busy() -> None:
            at_save.append(len(world.seen))
            disk.wait(20)

        rig.before_save = busy
        rig.evictor.submit((request("a"),), first)
        await rig.until(lambda: at_save == [0])
        rig.evictor.submit((request("b"),), second)
        disk.set()
        await rig.answered(2)

    rig = world.play(scene)
    assert rig.saves == [first, second] and at_save == [0, 0]


def test_a_record_is_kept_without_orders_and_once(world: World) -> None:
    """Cooldowns change too; what the disk holds already is not written again."""

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((), KEPT)
        await rig.until(lambda: rig.saves == [KEPT])
        rig.evictor.submit((), EvictionRecord(memory_at_seconds=1.0))
        rig.evictor.submit((request(),), KEPT)
        await rig.answered()

    assert world.play(scene).saves == [KEPT]


def test_what_the_disk_held_at_the_start_is_known(world: World) -> None:
    """No write for nothing, and a pod that was told before a restart may report its checkpoint."""
    victim = PendingVictim({}, 1.0, 9.0, notified_until_seconds=9.0)

    async def scene(rig: Rig) -> None:
        rig.evictor.checkpointed("u", 1.0)
        (outcome,) = await rig.answered()
        assert outcome == EvictionOutcome("u", OutcomeKind.CHECKPOINTED, 1000.0)

    assert world.play(scene, saved=EvictionRecord(pending={"u": victim})).saves == []


def test_without_a_disk_nothing_is_evicted(world: World) -> None:
    """Requests fail, told and counted, and are taken again once the disk is back."""

    async def scene(rig: Rig) -> None:
        rig.disk_error = OSError(28, "No space left on device")
        rig.evictor.submit((request("a"), notice("b")), KEPT)
        outcomes = await rig.answered(2)
        assert {(outcome.uid, outcome.kind) for outcome in outcomes} == {("uid-a", FAILED), ("uid-b", FAILED)}
        assert "No space left" in outcomes[0].detail
        assert rig.evictor.save_failures == 1 and not world.seen and not rig.notices
        rig.disk_error = None
        rig.evictor.submit((request("a"),), KEPT)
        assert (await rig.answered())[0].kind is EVICTED

    assert world.play(scene).saves == [KEPT]


def test_too_many_orders(world: World) -> None:
    """The oldest makes place for the newest, and fails; of one pod only the newest counts."""

    async def scene(rig: Rig) -> None:
        rig.evictor.submit(tuple(request(f"p{number}") for number in range(BOUND + 1)), KEPT)
        rig.evictor.submit((request("p5", grace_seconds=1),), KEPT)
        outcomes = rig.evictor.drain()
        assert [(outcome.uid, outcome.kind) for outcome in outcomes] == [("uid-p0", FAILED)]
        assert rig.evictor.dropped == 1 and rig.evictor.waiting == BOUND
        await rig.answered(BOUND)

    world.play(scene)
    assert sum(path.endswith("p5/eviction") for _, path in world.seen) == 1


def test_a_notice_that_drops_an_eviction_says_so(world: World) -> None:
    """The annotation of a pod that was told waits in the same queue."""

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((*(request(f"p{number}") for number in range(BOUND)), notice()), KEPT)
        kinds = {outcome.uid: outcome.kind for outcome in await rig.answered(BOUND + 1)}
        assert (kinds["uid-a"], kinds["uid-p0"], rig.evictor.dropped) == (NOTIFIED, FAILED, 1)

    world.play(scene)


def test_a_notice_needs_no_server(world: World) -> None:
    """The pod hears by its socket at once, once; annotation and Events follow, and their failure is no outcome."""
    world.on("PATCH", POD, plain(503))

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((notice(),), KEPT)
        (outcome,) = await rig.answered()
        assert outcome.kind is NOTIFIED
        await rig.until(lambda: rig.evictor.retries == 1)
        rig.now = LONGEST_SECONDS
        await rig.until(lambda: rig.evictor.waiting == 0)
        assert rig.outcomes == [] == list(rig.evictor.drain())

    rig = world.play(scene)
    assert rig.notices == [PreemptionNotice("uid-a", 130.0, "the node uses too much memory")]
    assert [about for about, *_ in rig.told.events] == ["Pod/a/uid-a", "Node/n/uid-n"]
    assert "POST" not in [method for method, _ in world.seen]


def test_an_annotated_notice(world: World) -> None:
    """With its deadline, for a program that reads its annotations."""

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((notice(),), KEPT)
        await rig.until(lambda: bool(rig.outcomes) and rig.evictor.waiting == 0)

    world.play(scene)
    ((_, path, _, body),) = world.server.requests
    told = json.loads(body["metadata"]["annotations"][ANNOTATION])
    assert path == POD and (told["kind"], told["deadline_seconds"]) == ("notify", 130.0)


SHOWN = StandingNotice(100.0, 130.0, "BEMemoryEvict")
SIGNED = msgspec.structs.replace(SHOWN, by="agent of node n")


def test_the_pod_shows_the_notice(world: World) -> None:
    """With the agent's name, in the same write."""

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((msgspec.structs.replace(notice(), notice=SHOWN),), KEPT)
        await rig.until(lambda: bool(rig.outcomes) and rig.evictor.waiting == 0)

    world.play(scene)
    ((_, _, _, body),) = world.server.requests
    assert standing_notice(body["metadata"]["annotations"]) == SIGNED


@pytest.mark.parametrize("stands", [True, False], ids=["ours stands", "another's stands"])
def test_a_blocked_eviction_takes_our_notice_away_and_no_other(world: World, stands: bool) -> None:
    """A patch that holds of that very text: where the scheduler's stands by now it changes nothing."""
    world.on("POST", EVICTION, refusal(429, "TooManyRequests"))
    if not stands:
        world.on("PATCH", POD, refusal(422, "Invalid"))

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((request(notice=SHOWN),), KEPT)
        await rig.until(lambda: bool(rig.outcomes) and rig.evictor.waiting == 0)

    world.play(scene)
    patches = [body for method, _, _, body in world.server.requests if method == "PATCH" and isinstance(body, list)]
    assert patches == [withdrawal(SIGNED, "uid-a")]


def test_who_is_spared_is_told(world: World) -> None:
    """By its socket at once, then by its annotations; nothing is evicted."""

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((request(kind=EvictionRequestKind.SPARE, notice=SHOWN),), KEPT)
        assert [outcome.kind for outcome in await rig.answered()] == [OutcomeKind.SPARED]
        assert rig.spared == ["uid-a"]

    rig = world.play(scene)
    assert [method for method, *_ in world.server.requests] == ["PATCH", "PATCH"]
    assert rig.told.events[0][2].startswith("Stays: ")


def test_a_notice_about_a_pod_that_is_gone(world: World) -> None:
    """The tick need not wait for it."""
    world.on("PATCH", POD, refusal(404, "NotFound"))

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((notice(),), KEPT)
        assert [outcome.kind for outcome in await rig.answered(2)] == [NOTIFIED, GONE]

    world.play(scene)


def test_the_end_of_a_notice_takes_its_place(world: World) -> None:
    """Time is up while the notice was not even saved: the pod is evicted, not told."""

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((notice(),), KEPT)
        rig.evictor.submit((request(),), KEPT)
        assert [outcome.kind for outcome in await rig.answered()] == [EVICTED]

    assert world.play(scene).notices == []


def test_checkpoints_of_pods_that_were_told(world: World) -> None:
    """Once a tick for each pod that was; others are nothing to the evictor."""
    told = PendingVictim({}, 1.0, 9.0, notified_until_seconds=9.0)
    record = EvictionRecord(pending={"told": told, "evicted": PendingVictim({}, 1.0, 9.0)})

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((), record)
        for uid in ("told", "told", "evicted", "stranger"):
            rig.evictor.checkpointed(uid, 1.0)
        assert [outcome.uid for outcome in rig.evictor.drain()] == ["told"] and rig.evictor.drain() == ()

    world.play(scene)


def test_a_save_that_was_begun_before_the_notice_ends_no_wait(world: World) -> None:
    """What the pod did since would be lost."""
    record = EvictionRecord(pending={"told": PendingVictim({}, 5.0, 9.0, notified_until_seconds=9.0)})

    async def scene(rig: Rig) -> None:
        rig.evictor.submit((), record)
        rig.evictor.checkpointed("told", 4.9)
        assert rig.evictor.drain() == ()
        rig.evictor.checkpointed("told", 5.0)
        assert len(rig.evictor.drain()) == 1

    world.play(scene)


def test_a_kill_is_told(world: World) -> None:
    """On pod and node, by its own reason, and counted."""

    async def scene(rig: Rig) -> None:
        victim = PreparedVictim("uid-a", "default", "a", "/kubepods/besteffort/poda", 1 << 30)
        rig.evictor.record_kill(Kill(victim, 1.0, 2.0, 1 << 20, 3))

    rig = world.play(scene)
    pod, node = rig.told.events
    assert pod[:2] == ("Pod/a/uid-a", "MemoryLastResort") and "3 processes" in pod[2]
    assert node[:2] == ("Node/n/uid-n", "MemoryLastResort") and "Pod default/a" in node[2]
    assert dict(rig.evictor.evictions) == {("MemoryLastResort", "killed"): 1}


def test_observing_sends_nothing(world: World) -> None:
    """No request, no record, no outcome; each pod and reason counts once."""

    async def scene(rig: Rig) -> None:
        for _ in range(3):
            rig.evictor.submit((request("a"), request("b"), notice("c")), KEPT)
        rig.evictor.checkpointed("uid-c", 1e9)
        await asyncio.sleep(0.05)
        assert rig.evictor.drain() == () and rig.evictor.waiting == 0

    rig = world.play(scene, dry=True)
    assert not world.seen and not rig.saves and not rig.told.events and not rig.notices
    assert dict(rig.evictor.evictions) == {("BEMemoryEvict", "dry_run"): 3}


def test_an_error_of_ours_leaves_no_trace(world: World) -> None:
    """The task ends and is run again: the pod it was about can be evicted then."""

    async def scene(rig: Rig) -> None:
        def broken(record: EvictionRecord) -> None:
            raise ZeroDivisionError

        good, rig._save = rig._save, broken  # type: ignore[method-assign]
        evictor = rig.make()
        evictor.submit((request(),), KEPT)
        with pytest.raises(BaseExceptionGroup):
            await asyncio.wait_for(evictor.run(), 20)
        evictor._around = msgspec.structs.replace(evictor._around, save=good)
        running = asyncio.create_task(evictor.run())
        assert (await rig.answered())[0].kind is EVICTED
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    world.play(scene)


# -- against the embedded API server ---------------------------------------------------------------------------


def manifest(name: str) -> dict[str, Any]:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "busybox"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


async def ready_pod(client: KubeClient, name: str) -> str:
    """The uid of a new pod that runs and is ready."""
    made = json.loads(await client.create("/api/v1/namespaces/default/pods", manifest(name)))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": status})
    return str(made["metadata"]["uid"])


def test_a_real_budget_a_real_eviction_and_a_pod_made_again(tmp_path: Path) -> None:
    """The same through TLS and a server that counts healthy pods: blocked, evicted with its grace, gone."""
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}

    async def scene(live: Live) -> None:
        client = await KubeClient.connect(live.kubeconfig, "test/1")
        rig = Rig(client)
        running = asyncio.create_task(rig.evictor.run())
        await client.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        uid = await ready_pod(client, "a")
        await client.create(budgets, budget)
        rig.evictor.submit((request(uid=uid),), KEPT)
        (blocked,) = await rig.answered()
        assert blocked.kind is BLOCKED and "budget b needs 1 healthy pods and has 1 currently" in blocked.detail
        await rig.until(lambda: rig.evictor.waiting == 0)
        told = (await client.get(POD, dict))["metadata"]["annotations"][ANNOTATION]
        assert json.loads(told)["outcome"] == "blocked"
        await client.delete(f"{budgets}/b")
        rig.evictor.submit((request(uid="uid-of-another"),), KEPT)
        assert (await rig.answered())[0].kind is GONE
        rig.evictor.submit((request(uid=uid, grace_seconds=7),), KEPT)
        assert (await rig.answered())[0].kind is EVICTED
        pod = await client.get(POD, dict)
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 7
        assert "DisruptionTarget" in [found["type"] for found in pod["status"]["conditions"]]
        assert "outcome" not in json.loads(pod["metadata"]["annotations"][ANNOTATION])
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.close()

    live = Live(tmp_path)
    try:
        asyncio.run(scene(live))
    finally:
        live.stop()
