"""Simulated nodes and pods as the API server shows them."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.apiserver.apimachinery.objects import parse_time
from local.simnodes.lifecycle import EXIT_CODE, RUN_SECONDS, USAGE
from local.simnodes.settings import Pace, Simulation
from local.simnodes.usage import DailyCurve

BATCH_CPU = "kubernetes.io/batch-cpu"


def conditions(obj: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in obj["status"]["conditions"]}


def test_a_node_is_ready_at_once(stage: Any) -> None:
    """With labels of its place, capacity, and what it lends in capacity and allocatable alike."""
    node = stage.node("sim-2")
    status = node["status"]
    assert conditions(node)["Ready"] == conditions(node)["ColocationReady"] == "True"
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-0"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "sim-2"
    assert status["capacity"]["cpu"] == "32" and status["capacity"]["memory"] == "128Gi"
    # 60 % of 32 CPUs may be in use, 25 % are.
    assert status["capacity"][BATCH_CPU] == status["allocatable"][BATCH_CPU] == "11200"


def test_a_node_has_devices(make_stage: Any) -> None:
    """In capacity and allocatable, after each new status too; a pod beyond them is refused."""
    stage = make_stage(Simulation(2, resources={"nvidia.com/gpu": 8}, pools={"pool": ("a100", "v100")}), DailyCurve())
    stage.add_pod("fits", requests={"cpu": "1", "nvidia.com/gpu": "8"})
    stage.add_pod("too-much", requests={"cpu": "1", "nvidia.com/gpu": "1"})
    stage.step(100)
    status = stage.node("sim-0")["status"]
    assert status["capacity"]["nvidia.com/gpu"] == status["allocatable"]["nvidia.com/gpu"] == "8"
    assert [stage.node(f"sim-{n}")["metadata"]["labels"]["pool"] for n in (0, 1)] == ["a100", "v100"]
    assert stage.pod("fits")["status"]["phase"] == "Running"
    assert stage.pod("too-much")["status"]["reason"] == "OutOfnvidia.com/gpu"


def test_a_node_never_falls_silent(stage: Any) -> None:
    """Its agent's word is renewed as a real one's, though nothing changes: silent nodes are withdrawn from."""
    for _ in range(60):
        stage.step(10)
        word = next(each for each in stage.node("sim-2")["status"]["conditions"] if each["type"] == "ColocationReady")
        assert stage.clock() - parse_time(word["lastHeartbeatTime"]) <= 100


def test_a_pod_runs_and_ends(stage: Any) -> None:
    """Created, running, ended; then nothing more is written about it."""
    stage.add_pod("p", annotations={RUN_SECONDS: "5"}, restartPolicy="Never")
    stage.step(0)
    assert stage.pod("p")["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    stage.step(2)
    assert stage.pod("p")["status"]["phase"] == "Running" and conditions(stage.pod("p"))["Ready"] == "True"
    stage.step(5)
    assert stage.pod("p")["status"]["phase"] == "Succeeded"
    assert not [write for write in stage.step(60) if write.key.startswith("pod/")]


def test_a_deleted_pod_goes(stage: Any) -> None:
    """Gracefully: it says how it ended before it is gone."""
    stage.add_pod("p")
    stage.step(3)
    stage.call("DELETE", "/api/v1/namespaces/default/pods/p")
    written = stage.step(2)
    end = next(write for write in written if write.key.startswith("pod/"))
    assert [request.method for request in end.requests] == ["PATCH", "DELETE"]
    assert end.requests[0].body["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    assert stage.get("/api/v1/pods")["items"] == []


@pytest.mark.parametrize(
    ("case", "pod", "reason", "words"),
    [
        ("more CPU than there is", {"requests": {"cpu": "33"}}, "OutOfcpu", "requested: 33000, used: 0"),
        (
            "more than is lent",
            {"requests": {BATCH_CPU: "11201"}, "labels": {"koordinator.sh/qosClass": "BE"}},
            f"OutOf{BATCH_CPU}",
            "capacity: 11200",
        ),
        ("another node's labels", {"nodeSelector": {"kubernetes.io/hostname": "x"}}, "NodeAffinity", "didn't match"),
        (
            "an annotation nobody can read",
            {"annotations": {USAGE: "lots"}},
            "UnexpectedAdmissionError",
            "annotation sublet.dev/simulated-usage: 'lots'",
        ),
        ("an exit code that is none", {"annotations": {EXIT_CODE: "999"}}, "UnexpectedAdmissionError", "0 to 255"),
    ],
)
def test_a_pod_is_refused(stage: Any, case: str, pod: dict[str, Any], reason: str, words: str) -> None:
    """As a kubelet refuses: Failed, with the reason, for good."""
    stage.add_pod("p", **pod)
    stage.step(5)
    status = stage.pod("p")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", reason), case
    assert words in status["message"]


def test_what_is_gone_leaves_room(stage: Any) -> None:
    """A pod that ended or was refused holds nothing."""
    stage.add_pod("a", annotations={RUN_SECONDS: "1"}, restartPolicy="Never", requests={"cpu": "20"})
    stage.add_pod("refused", requests={"cpu": "33"})
    stage.step(5)
    stage.add_pod("b", requests={"cpu": "20"})
    stage.step(5)
    assert stage.pod("b")["status"]["phase"] == "Running"


def test_online_pods_shrink_what_is_lent(stage: Any) -> None:
    """Ten seconds after the last look at the latest."""
    before = int(stage.node()["status"]["allocatable"][BATCH_CPU])
    stage.add_pod("p", requests={"cpu": "16"}, annotations={USAGE: "1"})
    stage.step(15)
    after = int(stage.node()["status"]["allocatable"][BATCH_CPU])
    assert after < before and stage.node()["status"]["capacity"][BATCH_CPU] == str(after)


def test_pods_of_other_nodes_are_not_touched(stage: Any) -> None:
    """Neither a real node's nor one's that does not exist."""
    stage.add_pod("p", node="elsewhere")
    assert not [write for write in stage.step(30) if write.key.startswith("pod/")]


def test_nothing_periodic_is_frequent(stage: Any) -> None:
    """In five minutes a node without pods writes one lease or two, five metrics or six, as many statuses."""
    stage.step(120)
    written = [write.key.partition("/")[0] for write in stage.step(300)]
    assert all(written.count(kind) <= 3 * most for kind, most in (("lease", 2), ("metric", 6), ("node", 6)))
    assert {"lease", "metric", "node"} >= set(written)


def test_a_lease_follows(stage: Any) -> None:
    """Before anybody would call the node silent, and long-lived."""
    stage.step(35)
    lease = stage.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/sim-1")
    assert lease["spec"]["leaseDurationSeconds"] == 900
    first = lease["spec"]["renewTime"]
    stage.step(320)
    again = stage.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/sim-1")
    assert again["spec"]["renewTime"] > first


def test_a_deleted_node_registers_again(stage: Any) -> None:
    """With its next status."""
    stage.call("DELETE", "/api/v1/nodes/sim-1")
    stage.step(400)
    assert conditions(stage.node("sim-1"))["Ready"] == "True"


def test_a_second_simulation_goes_on(stage: Any) -> None:
    """Nodes that are there are taken over; pods that run go on unjudged, and end when the first would have ended them."""
    stage.add_pod("p", annotations={RUN_SECONDS: "60"}, restartPolicy="Never", requests={"cpu": "20"})
    stage.step(30)
    stage.restart()
    written = stage.step(10)
    assert not [write for write in written if write.key.startswith("pod/")]
    stage.add_pod("q", requests={"cpu": "20"})
    stage.step(2)
    assert stage.pod("q")["status"]["reason"] == "OutOfcpu"
    stage.step(25)
    assert stage.pod("p")["status"]["phase"] == "Succeeded"


def test_metrics_are_written_as_the_agent_does(stage: Any) -> None:
    """Node, system and pod use, owned by the Node."""
    stage.add_pod("p", annotations={USAGE: "0.5"}, requests={"cpu": "4", "memory": "4Gi"})
    written = stage.step(75)
    metric = next(write for write in written if write.key == "metric/sim-0")
    create = metric.requests[0].missing[0]
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == stage.node()["metadata"]["uid"]
    status = metric.requests[0].body["status"]
    assert status["nodeMetric"]["nodeUsage"]["resources"]["cpu"] == "8"
    pods = [(row["name"], row["podUsage"]["resources"]["cpu"], row["qos"]) for row in status["podsMetric"]]
    assert pods == [("p", "2", "LSR")]


def test_time_may_pass_faster(make_stage: Any) -> None:
    """A day in five minutes: what is lent in the quiet of the night is taken back by day."""
    stage = make_stage(Simulation(1, pace=Pace(factor=288.0)), DailyCurve())
    lent = []
    for _ in range(30):
        stage.step(10)
        lent.append(int(stage.node()["status"]["allocatable"][BATCH_CPU]))
    assert max(lent[:10]) > 1.5 * min(lent[10:25])
