"""DaemonSets: the controller through the API."""

from embedded.tests.apiserver.workload_objects import (
    DAEMON_SETS,
    PODS,
    REVISIONS,
    images,
    pods,
    serve,
    template,
    workload,
)

AGENT = f"{DAEMON_SETS}/ag"
NODES = "/api/v1/nodes"


def node(api, name, **labels):
    api.post(NODES, {"metadata": {"name": name, "labels": labels}})


def start(api, nodes="abc", **spec):
    for name in nodes:
        node(api, name)
    anywhere = [{"operator": "Exists"}]  # the nodes are not ready: nobody keeps them so
    api.post(DAEMON_SETS, workload("ag", **{"template": template(tolerations=anywhere), **spec}))
    api.settle()


def change(api, **spec):
    assert api.patch(AGENT, {"spec": spec}, "strategic")[0] == 200
    api.settle()


def targets(api):
    affinities = [pod["spec"]["affinity"]["nodeAffinity"] for pod in pods(api)]
    terms = [each["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] for each in affinities]
    return sorted(term[0]["matchFields"][0]["values"][0] for term in terms)


def test_nodes_that_come_get_a_pod_and_those_that_go_lose_it(api):
    """The scheduler binds it."""
    start(api, "ab")
    assert targets(api) == ["a", "b"]
    node(api, "c")
    api.settle()
    assert targets(api) == ["a", "b", "c"]
    api.call("DELETE", f"{NODES}/b")
    api.settle()
    assert targets(api) == ["a", "c"]
    assert api.get(AGENT)["status"]["desiredNumberScheduled"] == 2


def test_a_label_decides_and_a_change_of_it_too(api):
    """nodeSelector."""
    start(api, template=template(nodeSelector={"pool": "x"}, tolerations=[{"operator": "Exists"}]))
    assert pods(api) == []
    api.patch(f"{NODES}/b", {"metadata": {"labels": {"pool": "x"}}})
    api.settle()
    assert targets(api) == ["b"]


def test_an_update_goes_one_by_one_and_keeps_its_history(api):
    """And a way back is one more step of it."""
    start(api)
    serve(api)
    change(api, template=template("a:2"))
    assert images(api) == ["a:1", "a:1", "a:2"]
    for _ in range(3):
        serve(api)
    assert images(api) == ["a:2"] * 3 and api.get(AGENT)["status"]["updatedNumberScheduled"] == 3
    first, second = sorted(api.get(REVISIONS)["items"], key=lambda each: each["revision"])
    assert (first["revision"], second["revision"]) == (1, 2)
    code, _ = api.patch(AGENT, first["data"], "strategic")
    api.settle()
    for _ in range(3):
        serve(api)
    assert code == 200 and images(api) == ["a:1"] * 3
    assert sorted(each["revision"] for each in api.get(REVISIONS)["items"]) == [2, 3]


def test_with_on_delete_a_person_decides_when(api):
    """A deleted pod comes back as the new one."""
    start(api, updateStrategy={"type": "OnDelete"})
    serve(api)
    change(api, template=template("a:2"))
    assert images(api) == ["a:1"] * 3
    api.call("DELETE", f"{PODS}/{pods(api)[0]['metadata']['name']}")
    api.settle()
    assert images(api) == ["a:1", "a:1", "a:2"]


def test_a_pod_that_keeps_failing_is_replaced_after_growing_pauses(api):
    """The first at once."""
    start(api, "a")
    seen = set()
    for pause in (0, 1, 2):
        (pod,) = pods(api)
        seen.add(pod["metadata"]["name"])
        api.set_pod_status(pod["metadata"]["name"], {"phase": "Failed"})
        api.settle()
        if pause:
            assert pods(api)[0]["metadata"]["name"] in seen
            api.clock.advance(pause)
            api.settle()
        assert pods(api)[0]["metadata"]["name"] not in seen


def test_a_history_beyond_its_limit_goes(api):
    """The oldest first."""
    start(api, "a", revisionHistoryLimit=1)
    for number in range(2, 5):
        change(api, template=template(f"a:{number}"))
        serve(api)
        serve(api)
    assert sorted(each["revision"] for each in api.get(REVISIONS)["items"]) == [3, 4]


def test_deletion_takes_pods_and_history_along(api):
    """By their owner."""
    start(api)
    api.call("DELETE", AGENT)
    api.settle()
    assert pods(api) == [] and api.get(REVISIONS)["items"] == []
