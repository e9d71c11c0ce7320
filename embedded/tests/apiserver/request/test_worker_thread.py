"""Large bodies: bounded, and worked on while other clients are answered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from embedded.apiserver.storage.object_store import MOST_OBJECT_BYTES

HERE = "/api/v1/namespaces/default"
MAPS, PODS = f"{HERE}/configmaps", f"{HERE}/pods"
YAML = {"content_type": "application/yaml"}
APPLY = {"content_type": "application/apply-patch+yaml"}
MERGE = {"content_type": "application/merge-patch+json"}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def many_keys(count: int) -> bytes:
    head = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n"
    return head + b"".join(b"  k%d: v\n" % number for number in range(count))


def environment(count: int, value: str = "v") -> list[dict[str, Any]]:
    env = [{"name": f"E{number}", "value": value} for number in range(count)]
    return [{"name": "c", "image": "i", "env": env}]


LARGE = {
    "a YAML of many keys": ("POST", MAPS, many_keys(60_000), YAML, 201),
    "a YAML that is no object": ("POST", MAPS, b"[" + b"1," * 100_000 + b"]", YAML, 400),
    "a pod of many variables": ("POST", PODS, pod("large", containers=environment(20_000)), {}, 201),
    "many wrong fields": ("POST", PODS, pod("large", tolerations=[{}] * 100_000), {}, 422),
    "many unknown fields": ("POST", PODS, {**pod("large"), **{f"x{n}": 1 for n in range(100_000)}}, {}, 201),
    "an apply": ("PATCH", f"{PODS}/large?fieldManager=m", pod("large", containers=environment(5_000)), APPLY, 201),
}


@pytest.mark.parametrize(("method", "url", "body", "headers", "code"), LARGE.values(), ids=LARGE)
def test_other_clients_are_answered_meanwhile(api, method, url, body, headers, code):
    """Before the large request is, in whatever time that takes; the answers come from the same event loop."""
    api.post(MAPS, {"metadata": {"name": "small"}})
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def story() -> tuple[Any, int]:
        large = asyncio.create_task(api._raw(method, url, data, headers))
        answered = 0
        await asyncio.sleep(0)
        while not large.done():
            small = await api._raw("GET", f"{MAPS}/small", None, {})
            answered += small.status == 200 and not large.done()
            await asyncio.sleep(0)
        return await large, answered

    answer, answered = asyncio.run(story())
    assert answer.status == code, answer.body[:500]
    assert answered > 0


def at_once(api, first, second):
    """Two requests, the second of which comes while the first is worked on."""

    async def story():
        large = asyncio.create_task(api._raw(*first))
        await asyncio.sleep(0)
        small = await api._raw(*second)
        assert not large.done()
        return await large, small

    large, small = asyncio.run(story())
    return (large.status, json.loads(large.body)), (small.status, json.loads(small.body))


def test_a_large_change_that_is_overtaken_is_made_again(api):
    """Nothing of the small one is lost."""
    api.post(PODS, pod("p"))
    large = {"metadata": {"annotations": {f"k{n}": "v" * 10 for n in range(8_000)}}}
    small = {"metadata": {"labels": {"a": "b"}}}
    (code, _), (small_code, _) = at_once(
        api, ("PATCH", f"{PODS}/p", large, MERGE), ("PATCH", f"{PODS}/p", small, MERGE)
    )
    assert (code, small_code) == (200, 200)
    meta = api.get(f"{PODS}/p")["metadata"]
    assert meta["labels"] == {"a": "b"} and len(meta["annotations"]) == 8_000


def test_a_large_new_object_whose_name_is_taken_meanwhile_is_refused(api):
    """As if it had come a moment later."""
    body = json.dumps(pod("p", containers=environment(10_000))).encode()
    (code, told), (small_code, _) = at_once(api, ("POST", PODS, body, {}), ("POST", PODS, pod("p"), {}))
    assert (code, told["reason"], small_code) == (409, "AlreadyExists", 201)
    assert "env" not in api.get(f"{PODS}/p")["spec"]["containers"][0]


def test_an_object_larger_than_etcd_takes_is_refused(api):
    """1.5 MiB, in etcd's words; what was there stays."""
    url = f"{HERE}/podtemplates"

    def template(name: str, text: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "template": {"spec": {"containers": environment(1, text)}}}

    before = api.post(url, template("p", "small"))
    too_large = "x" * MOST_OBJECT_BYTES
    for method, where, name in (("POST", url, "q"), ("PUT", f"{url}/p", "p")):
        code, told = api.call(method, where, template(name, too_large))
        assert (code, told["message"]) == (500, "etcdserver: request is too large")
    assert api.get(f"{url}/p") == before
    assert api.call("GET", f"{url}/q")[0] == 404
    api.post(url, template("q", "x" * (MOST_OBJECT_BYTES - 4096)))
    assert api.call("DELETE", f"{url}/q")[0] == 200


def test_a_definition_that_is_too_large_serves_nothing(api):
    """Neither its type nor the definition is there afterwards."""
    schema = {"openAPIV3Schema": {"type": "object", "description": "x" * MOST_OBJECT_BYTES}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "x.example", "scope": "Namespaced", "names": names, "versions": [version]}
    url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert api.call("POST", url, {"metadata": {"name": "things.x.example"}, "spec": spec})[0] == 500
    assert api.call("GET", f"{url}/things.x.example")[0] == 404
    assert api.call("GET", "/apis/x.example/v1/things")[0] == 404


def test_of_very_many_errors_the_first_hundred_are_told(api):
    """An answer of 170 MB helps nobody; that there are more is said."""
    code, told = api.call("POST", PODS, pod("p", tolerations=[{}] * 5_000))
    assert (code, len(told["details"]["causes"])) == (422, 101)
    assert told["message"].endswith("more than 100 errors]")
    assert "spec.tolerations[0]" in told["message"]
