"""Lists page by page and at a revision, in the forms a client may ask for."""

import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"


def put(api, *names, data="1"):
    for name in names:
        api.post(MAPS, {"metadata": {"name": name, "labels": {"first": name[0]}}, "data": {"v": data}})


def names(found):
    return [item["metadata"]["name"] for item in found["items"]]


def values(found):
    return {item["metadata"]["name"]: item["data"]["v"] for item in found["items"]}


def test_the_pages_of_a_list_show_the_moment_of_the_first(api):
    """What is created, changed and deleted between two pages does not show in the later one."""
    put(api, "a", "b", "c", "d")
    first = api.get(f"{MAPS}?limit=2")
    assert (names(first), first["metadata"]["remainingItemCount"]) == (["a", "b"], 2)
    api.patch(f"{MAPS}/c", {"data": {"v": "2"}})
    api.call("DELETE", f"{MAPS}/d")
    put(api, "cc")
    rest = api.get(f"{MAPS}?limit=2&continue={first['metadata']['continue']}")
    assert values(rest) == {"c": "1", "d": "1"}
    assert "continue" not in rest["metadata"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert values(api.get(MAPS)) == {"a": "1", "b": "1", "c": "2", "cc": "1"}


def test_with_selectors_the_rest_is_not_counted(api):
    """Kubernetes leaves remainingItemCount out then."""
    put(api, "a", "aa", "b", "ab")
    found = api.get(f"{MAPS}?limit=1&labelSelector=first%3Da")
    assert "remainingItemCount" not in found["metadata"] and found["metadata"]["continue"]


def test_a_list_at_an_exact_revision(small_ring_api):
    """As it was then, as long as the log reaches back; 410 after that, 504 for one that is not there yet."""
    api = small_ring_api
    put(api, "a", "b")
    then = api.get(MAPS)["metadata"]["resourceVersion"]
    api.patch(f"{MAPS}/a", {"data": {"v": "2"}})
    api.call("DELETE", f"{MAPS}/b")
    url = f"{MAPS}?resourceVersionMatch=Exact&resourceVersion="
    found = api.get(f"{url}{then}")
    assert (values(found), found["metadata"]["resourceVersion"]) == ({"a": "1", "b": "1"}, then)
    for number in range(10):
        api.patch(f"{MAPS}/a", {"data": {"v": f"x{number}"}})
    code, refused = api.call("GET", f"{url}{then}")
    assert (code, refused["reason"]) == (410, "Expired")
    assert api.call("GET", f"{url}{api.core.store.revision + 1}")[0] == 504


def test_an_expired_token_comes_with_one_that_goes_on_regardless(small_ring_api):
    """A client may take the inconsistent remainder instead of starting over."""
    api = small_ring_api
    put(api, "a", "b", "c")
    token = api.get(f"{MAPS}?limit=1")["metadata"]["continue"]
    for number in range(10):
        api.patch(f"{MAPS}/c", {"data": {"v": f"x{number}"}})
    code, refused = api.call("GET", f"{MAPS}?limit=1&continue={token}")
    assert (code, refused["reason"]) == (410, "Expired")
    found = api.get(f"{MAPS}?continue={refused['metadata']['continue']}")
    assert values(found) == {"b": "1", "c": "x9"}


@pytest.mark.parametrize("token", ["nonsense", "e30=", "%00", "W10="])
def test_a_token_that_is_not_ours_is_refused(api, token):
    """400, whatever is in it."""
    code, refused = api.call("GET", f"{MAPS}?limit=1&continue={token}")
    assert (code, refused["message"]) == (400, "invalid continue token: continue key is not valid")


def test_a_revision_from_the_future_is_not_read_yet(api):
    """Neither a list nor one object; clients wait and try again."""
    put(api, "a")
    later = api.core.store.revision + 1
    for url in (f"{MAPS}?resourceVersion={later}", f"{MAPS}/a?resourceVersion={later}"):
        code, refused = api.call("GET", url)
        assert (code, refused["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")
    assert api.call("GET", f"{MAPS}?resourceVersion=x")[0] == 400


def test_metadata_alone(api):
    """For clients that want names and labels of large objects."""
    put(api, "a")
    _, found = api.call("GET", MAPS, accept=METADATA_LIST)
    assert (found["kind"], found["items"][0]["kind"]) == ("PartialObjectMetadataList", "PartialObjectMetadata")
    assert set(found["items"][0]) == {"kind", "apiVersion", "metadata"}
    _, one = api.call("GET", f"{MAPS}/a", accept=METADATA)
    assert one == found["items"][0]


def test_a_table_of_a_page_says_how_to_go_on(api):
    """kubectl pages through tables."""
    put(api, "a", "b")
    _, table = api.call("GET", f"{MAPS}?limit=1", accept=TABLE)
    assert [row["cells"][0] for row in table["rows"]] == ["a"]
    assert table["metadata"]["continue"] and table["metadata"]["remainingItemCount"] == 1


def test_an_object_that_leaves_the_selector_is_seen_as_it_was(api):
    """DELETED carries its last state inside the selector, under the revision of the change."""
    put(api, "a")
    since = api.core.store.revision
    _, changed = api.patch(f"{MAPS}/a", {"metadata": {"labels": {"first": "z"}}})
    (event,) = api.watch(f"{MAPS}?watch=1&resourceVersion={since}&labelSelector=first%3Da")
    assert (event["type"], event["object"]["metadata"]["labels"]) == ("DELETED", {"first": "a"})
    assert event["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


def test_a_page_at_a_revision_is_of_that_revision(api):
    """limit with resourceVersion and no resourceVersionMatch; without a limit the newest is good enough (KEP-2523)."""
    put(api, "a", "b")
    then = api.get(MAPS)["metadata"]["resourceVersion"]
    api.patch(f"{MAPS}/a", {"data": {"v": "2"}})
    paged = api.get(f"{MAPS}?limit=1&resourceVersion={then}")
    assert (values(paged), paged["metadata"]["resourceVersion"]) == ({"a": "1"}, then)
    assert values(api.get(f"{MAPS}?resourceVersion={then}"))["a"] == "2"
    assert values(api.get(f"{MAPS}?limit=1&resourceVersion={then}&resourceVersionMatch=NotOlderThan")) == {"a": "2"}
    assert values(api.get(f"{MAPS}?limit=1&resourceVersion=0")) == {"a": "2"}
