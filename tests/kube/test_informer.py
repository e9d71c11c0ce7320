"""The local copy equals the server's collection, whatever happens to the watch."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import msgspec

from kube.informer import Change, ChangeKind, Informer
from kube.objects import Metadata, Pod


def pod(name: str, version: int, uid: str = "") -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": uid or f"u-{name}", "resourceVersion": str(version)},
    }


def page(version: int, *items: Any, more: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)}


def event(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": item}


def play(
    server: Any,
    answers: list[Any],
    enough: int,
    requests: int = 0,
    resource: str = "v1/pods",
    type_: Any = Pod,
    **options: Any,
) -> tuple[list[str], Informer[Pod]]:
    """Run an informer until `enough` changes and `requests` came; returns the changes as text."""

    async def scene() -> Any:
        client = await server.start()
        server.answers = answers
        changes: list[str] = []

        def note(change: Change[Pod]) -> None:
            metadata = change.object.metadata
            version = [metadata.resource_version] if type_ is Pod else []
            changes.append(" ".join([change.kind.value, metadata.name, *version]))

        informer = Informer(client, resource, type_, on_change=note, **options)
        running = asyncio.create_task(informer.run())
        async with asyncio.timeout(20):
            while len(changes) < enough or len(server.requests) < requests:
                await asyncio.sleep(0.01)
        running.cancel()
        await client.close()
        await server.stop()
        return changes, informer

    return asyncio.run(scene())  # type: ignore[no-any-return]


def test_list_then_watch(server: Any, says_: Any, streams_: Any) -> None:
    """Pages, then events in order; bookmarks move only the version; selectors go along."""
    answers = [
        says_(page(5, pod("a", 1), more="next")),
        says_(page(5, pod("b", 2))),
        streams_(
            event("ADDED", pod("c", 6)),
            event("MODIFIED", pod("a", 7)),
            event("BOOKMARK", {"metadata": {"resourceVersion": "9"}}),
            event("DELETED", pod("b", 10)),
        ),
        streams_(hold=True),
    ]
    changes, informer = play(server, answers, 5, requests=4, field_selector="spec.nodeName=n")
    assert changes == ["ADDED a 1", "ADDED b 2", "ADDED c 6", "MODIFIED a 7", "DELETED b 2"]
    assert set(informer.items) == {"ns/a", "ns/c"} and informer.synced.is_set()
    queries = [request[2] for request in server.requests]
    assert queries[0]["fieldSelector"] == "spec.nodeName=n" and queries[1]["continue"] == "next"
    assert queries[2]["resourceVersion"] == "5" and queries[3]["resourceVersion"] == "10"


def test_long_answers_are_asked_for_in_parts(server: Any, says_: Any, streams_: Any) -> None:
    """Whoever may create pods makes each of 9 MB, and the agent has little memory; one alone is read whatever its size."""
    long = {**pod("b", 2), "spec": {"containers": [{"name": "c", "command": ["<" * 3000]}]}}
    answers = [
        says_(page(5, pod("a", 1), long, pod("c", 3))),
        says_(page(5, pod("a", 1), long, more="c")),
        says_(page(5, pod("a", 1), more="b")),
        says_(page(5, long, pod("c", 3))),
        says_(page(5, long, more="c")),
        says_(page(5, pod("c", 3), more="d")),
        says_(page(5, pod("d", 4), more="e")),
        says_(page(5, pod("e", 5))),
        streams_(hold=True),
    ]
    changes, informer = play(server, answers, 5, page=20, most_bytes=2000)
    assert changes == ["ADDED a 1", "ADDED b 2", "ADDED c 3", "ADDED d 4", "ADDED e 5"] and informer.synced.is_set()
    asked = [(request[2]["limit"], request[2].get("continue")) for request in server.requests[:8]]
    assert asked == [
        ("20", None),
        ("2", None),
        ("1", None),
        ("2", "b"),
        ("1", "b"),
        ("1", "c"),
        ("2", "d"),
        ("4", "e"),
    ]


def test_a_server_that_is_slow_is_asked_for_fewer(server: Any, says_: Any, streams_: Any) -> None:
    """One that takes longer for a whole page than it is given would never be through; no list begins with more again."""

    async def scene() -> list[str]:
        client = await server.start()
        names = [f"p{number}" for number in range(40)]
        limits: list[str] = []

        async def answer(request: Any) -> Any:
            if request.query.get("watch"):
                return await streams_(event("ERROR", {"kind": "Status", "code": 410}))(request)
            begin, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
            limits.append(f"{limit} from {begin}")
            await asyncio.sleep(0.02 * limit)
            end = begin + limit
            found = [pod(name, 1) for name in names[begin:end]]
            return await says_(page(5, *found, more=str(end) if end < len(names) else ""))(request)

        server.answers = [answer]
        informer = Informer(client, "v1/pods", Pod, page=32, page_seconds=0.6)
        running = asyncio.create_task(informer.run())
        async with asyncio.timeout(10):
            await informer.synced.wait()
            first = len(limits)
            while len(limits) == first:
                await asyncio.sleep(0.01)
        running.cancel()
        await client.close()
        await server.stop()
        assert len(informer.items) == len(names)
        return limits

    asked = asyncio.run(scene())
    assert asked[:2] == ["32 from 0", "4 from 0"] and not any(each.startswith("32") for each in asked[1:])


def test_gone_lists_again_and_reports_what_was_missed(server: Any, says_: Any, streams_: Any) -> None:
    """410 as an event: deletions and changes in the gap are told, unchanged objects are not."""
    answers = [
        says_(page(5, pod("a", 1), pod("b", 2))),
        streams_(event("ERROR", {"kind": "Status", "code": 410})),
        says_(page(20, pod("a", 1), pod("c", 15))),
        streams_(hold=True),
    ]
    changes, _ = play(server, answers, 4)
    assert changes == ["ADDED a 1", "ADDED b 2", "ADDED c 15", "DELETED b 2"]


def test_an_object_replaced_under_its_name(server: Any, says_: Any, streams_: Any) -> None:
    """A new uid is another object: the old one is deleted first."""
    answers = [
        says_(page(5, pod("a", 1))),
        streams_(event("MODIFIED", pod("a", 6, uid="other"))),
        streams_(hold=True),
    ]
    assert play(server, answers, 3)[0] == ["ADDED a 1", "DELETED a 1", "ADDED a 6"]


def test_refusals_are_waited_out(server: Any, says_: Any, streams_: Any) -> None:
    """500 on list, then 410 on watch, then all is well."""
    answers = [
        says_({"message": "boom"}, 500),
        says_(page(5, pod("a", 1))),
        says_({"message": "too old"}, 410),
        says_(page(9, pod("b", 8))),
        streams_(hold=True),
    ]
    assert play(server, answers, 3)[0] == ["ADDED a 1", "ADDED b 8", "DELETED a 1"]


def test_one_malformed_object_costs_only_itself(server: Any, says_: Any, streams_: Any) -> None:
    """The rest of the list is taken in."""
    broken = {"metadata": {"name": "x", "namespace": "ns", "uid": "u"}, "spec": {"containers": "none"}}
    answers = [says_(page(5, broken, {"metadata": 7}, pod("a", 1))), streams_(hold=True)]
    changes, informer = play(server, answers, 1)
    assert changes == ["ADDED a 1"] and set(informer.items) == {"ns/a"} and set(informer.unread) == {"ns/x"}


def test_a_malformed_object_counts_until_it_is_gone(server: Any, says_: Any, streams_: Any) -> None:
    """By a watch, or by a list; one that is mended is no longer unread."""
    broken = [{"metadata": {"name": name, "namespace": "ns", "uid": "u"}, "spec": 7} for name in "xyz"]
    mended = {"metadata": {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "6"}}
    events = [{"type": "MODIFIED", "object": mended}, {"type": "DELETED", "object": broken[1]}]
    answers = [says_(page(5, *broken)), streams_(*events, {"type": "ERROR", "object": {}}), says_(page(9, pod("a", 1)))]
    changes, informer = play(server, [*answers, streams_(hold=True)], 3)
    assert changes == ["ADDED x 6", "DELETED x 6", "ADDED a 1"] or changes == ["ADDED x 6", "ADDED a 1", "DELETED x 6"]
    assert informer.unread == {}


def test_what_is_kept_of_an_object(server: Any, says_: Any, streams_: Any) -> None:
    """All of it is told as it comes; where it goes, or another takes its name, what was kept is."""
    answers = [
        says_(page(5, pod("a", 1), pod("b", 2))),
        streams_({"type": "DELETED", "object": pod("a", 6)}, hold=True),
    ]
    kept: dict[str, Any] = {"kept": lambda item: Pod(Metadata(uid=item.metadata.uid)), "page": 7}
    changes, informer = play(server, answers, 3, requests=2, **kept)
    assert [change.partition(" ")[0] for change in changes] == ["ADDED", "ADDED", "DELETED"]
    assert changes[:2] == ["ADDED a 1", "ADDED b 2"] and "a" not in changes[2]
    assert [item.metadata.name for item in informer.items.values()] == [""]
    assert server.requests[0][2]["limit"] == "7"


def test_change_kinds_are_the_watch_types() -> None:
    """The three that concern objects."""
    assert [kind.value for kind in ChangeKind] == ["ADDED", "MODIFIED", "DELETED"]


GROUPS = "scheduling.sigs.k8s.io/v1alpha1/podgroups"


def test_an_undefined_resource_is_an_empty_collection(server: Any, says_: Any, streams_: Any) -> None:
    """No such definition is an answer: whoever waits for the first list goes on; once it exists it is read."""
    undefined = says_({"message": "no such resource"}, 404)
    changes, informer = play(server, [undefined], 0, requests=2, resource=GROUPS)
    assert informer.synced.is_set() and informer.silent_seconds < 20
    answers = [undefined, says_(page(5, pod("a", 1))), undefined, says_(page(7, pod("b", 6))), streams_(hold=True)]
    changes, informer = play(server, answers, 3, resource=GROUPS)
    assert changes == ["ADDED a 1", "DELETED a 1", "ADDED b 6"]


def test_an_undefined_resource_is_asked_for_as_often_as_wanted(server: Any, says_: Any) -> None:
    """Where somebody waits for its objects: in the time that it takes here waits that double would allow six."""
    undefined = says_({"message": "no such resource"}, 404)
    play(server, [undefined], 0, requests=12, resource=GROUPS, undefined_seconds=0.02)
    assert {request[1] for request in server.requests} == {"/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups"}


def test_a_core_resource_is_never_undefined(server: Any, says_: Any, streams_: Any) -> None:
    """404 from what stands before the API server is a failure: nothing is known before it, nothing forgotten after."""
    strange = says_({"message": "404 page not found"}, 404)
    _, informer = play(server, [strange], 0, requests=2)
    assert not informer.synced.is_set() and informer.silent_seconds == math.inf
    answers = [
        strange,
        says_(page(5, pod("a", 1))),
        strange,
        streams_(event("ADDED", pod("b", 6))),
        streams_(hold=True),
    ]
    changes, informer = play(server, answers, 2)
    assert changes == ["ADDED a 1", "ADDED b 6"] and set(informer.items) == {"ns/a", "ns/b"}


def test_a_server_that_ends_every_watch_is_not_hammered(server: Any, says_: Any, streams_: Any) -> None:
    """Neither an orderly end at once nor 410 at once makes a busy loop: waits double."""

    async def scene(ending: Any) -> int:
        client = await server.start()
        server.requests.clear()

        async def answer(request: Any) -> Any:
            return await (ending if request.query.get("watch") else says_(page(5)))(request)

        server.answers = [answer]
        running = asyncio.create_task(Informer(client, "v1/pods", Pod).run())
        await asyncio.sleep(1.2)
        running.cancel()
        await client.close()
        await server.stop()
        return len(server.requests)

    for ending in (streams_(), streams_(event("ERROR", {"kind": "Status", "code": 410}))):
        assert asyncio.run(scene(ending)) < 20


class Bare(msgspec.Struct, frozen=True):
    name: str = ""
    labels: dict[str, str] = {}


class Thing(msgspec.Struct, frozen=True):
    metadata: Bare = Bare()


def test_a_type_that_reads_less_of_the_metadata_is_followed_too(server: Any, says_: Any, streams_: Any) -> None:
    """What tells objects and their versions apart is read beside it: no change goes unnoticed."""
    answers = [
        says_(page(5, pod("a", 1))),
        streams_(
            event("MODIFIED", pod("a", 6)),
            event("MODIFIED", pod("a", 7, uid="other")),
            event("MODIFIED", pod("a", 8, uid="other")),
            event("DELETED", pod("a", 9, uid="other")),
        ),
        streams_(hold=True),
    ]
    changes, informer = play(server, answers, 6, type_=Thing)
    told = ["ADDED a", "MODIFIED a", "DELETED a", "ADDED a", "MODIFIED a", "DELETED a"]
    assert (changes, informer.items) == (told, {})
