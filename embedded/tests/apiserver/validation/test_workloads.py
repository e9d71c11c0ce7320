"""Workloads that are refused, in Kubernetes' words; and what they are given when they leave it out."""

import pytest

from embedded.tests.apiserver.workload_objects import (
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    REVISIONS,
    template,
    workload,
)


def rolling(**steps):
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": steps}}


def daemon_rolling(**steps):
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": steps}}


REFUSED = {
    "labels its selector does not match": (
        DEPLOYMENTS,
        {"template": template(labels={"a": "b"})},
        'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
    ),
    "no selector": (DEPLOYMENTS, {"selector": None}, "spec.selector: Invalid value: {}"),
    "a selector for everything": (
        REPLICA_SETS,
        {"selector": {}},
        "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
    ),
    "a daemon's selector for everything": (DAEMON_SETS, {"selector": {}}, "empty selector is invalid for daemonset"),
    "fewer than none": (
        DEPLOYMENTS,
        {"replicas": -1},
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ),
    "pods that end": (
        REPLICA_SETS,
        {"template": template(restartPolicy="Never")},
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ),
    "pods with a deadline": (
        DAEMON_SETS,
        {"template": template(activeDeadlineSeconds=5)},
        "activeDeadlineSeconds in DaemonSet is not Supported",
    ),
    "a deadline before pods can be ready": (
        DEPLOYMENTS,
        {"minReadySeconds": 60, "progressDeadlineSeconds": 60},
        "must be greater than minReadySeconds",
    ),
    "no way to go": (DEPLOYMENTS, rolling(maxSurge=0, maxUnavailable=0), "may not be 0 when `maxSurge` is 0"),
    "no share": (
        DEPLOYMENTS,
        rolling(maxSurge="many"),
        "a valid percent string must be a numeric string followed by an ending '%'",
    ),
    "more than all": (DEPLOYMENTS, rolling(maxUnavailable="101%"), "must not be greater than 100%"),
    "steps of another strategy": (
        DEPLOYMENTS,
        {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
        "may not be specified when strategy `type` is 'Recreate'",
    ),
    "no such strategy": (DEPLOYMENTS, {"strategy": {"type": "Slow"}}, 'supported values: "Recreate", "RollingUpdate"'),
    "no such daemon strategy": (
        DAEMON_SETS,
        {"updateStrategy": {"type": "Recreate"}},
        'supported values: "RollingUpdate", "OnDelete"',
    ),
    "two ways at once": (
        DAEMON_SETS,
        daemon_rolling(maxSurge=1, maxUnavailable=1),
        "may not be set when maxUnavailable is non-zero",
    ),
    "neither way": (
        DAEMON_SETS,
        daemon_rolling(maxSurge=0, maxUnavailable=0),
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
    ),
}


@pytest.mark.parametrize(("where", "spec", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(api, where, spec, words):
    """With its field."""
    code, status = api.call("POST", where, workload(**spec))
    assert code == 422 and words in status["message"], status["message"]


@pytest.mark.parametrize("where", [DEPLOYMENTS, REPLICA_SETS, DAEMON_SETS])
def test_a_selector_is_for_good(api, where):
    """Whatever else may change."""
    api.post(where, workload())
    labels = {"app": "web", "b": "c"}
    code, status = api.patch(
        f"{where}/web", {"spec": {"selector": {"matchLabels": labels}, "template": template(labels=labels)}}
    )
    assert (
        code == 422
        and "spec.selector: Invalid value" in status["message"]
        and "field is immutable" in status["message"]
    )


def test_what_a_deployment_is_given(api):
    """As the API reference lists it."""
    spec = api.post(DEPLOYMENTS, workload())["spec"]
    assert {key: spec[key] for key in ("replicas", "revisionHistoryLimit", "progressDeadlineSeconds", "strategy")} == {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
    }
    assert spec["template"]["spec"]["restartPolicy"] == "Always"


def test_what_a_daemon_set_is_given(api):
    """One node at a time."""
    spec = api.post(DAEMON_SETS, workload())["spec"]
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    assert spec["revisionHistoryLimit"] == 10


def test_the_data_of_a_revision_is_kept_as_it_is_and_for_good(api):
    """Whatever it holds."""
    data = {"spec": {"template": {"$patch": "replace", "x": [1, None]}}}
    made = api.post(REVISIONS, {"metadata": {"name": "r"}, "data": data, "revision": 1})
    assert made["data"] == data
    code, status = api.patch(f"{REVISIONS}/r", {"data": {"other": 1}})
    assert code == 422 and "data: Invalid value" in status["message"]
    code, _ = api.patch(f"{REVISIONS}/r", {"revision": 2})
    assert code == 200
    code, status = api.call("POST", REVISIONS, {"metadata": {"name": "s"}, "revision": 1})
    assert code == 422 and "data: Required value: data is mandatory" in status["message"]
