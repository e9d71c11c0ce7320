"""Claims find volumes that are there; nothing is provisioned."""

import pytest

from embedded.apiserver.apimachinery.resource_types import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from embedded.apiserver.presentation.printers import columns_of

VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
EVENTS = "/api/v1/namespaces/default/events"


def volume(name="v", size="10Gi", labels=None, **spec):
    base = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": base | {"storageClassName": "fast"} | spec}


def claim(name="c", size="5Gi", **spec):
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": base | {"storageClassName": "fast"} | spec}


def storage_class(name="fast", mark="false", **fields):
    meta = {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": mark}}
    return {"metadata": meta, "provisioner": "example.com/disk", **fields}


def bound(api, name="c"):
    found = api.get(f"{CLAIMS}/{name}")
    return found["status"]["phase"], found["spec"].get("volumeName", "")


def phase(api, name="v"):
    return api.get(f"{VOLUMES}/{name}")["status"]["phase"]


# volumes, claim -> the volume it gets
CHOICES = {
    "the smallest that suits": (
        [volume("big", "20Gi"), volume("fits", "6Gi"), volume("small", "1Gi")],
        claim(),
        "fits",
    ),
    "by name where sizes are equal": ([volume("b"), volume("a")], claim(), "a"),
    "of its class": ([volume("a", storageClassName="slow"), volume("b")], claim(), "b"),
    "of no class": ([volume("a"), volume("b", storageClassName="")], claim(storageClassName=""), "b"),
    "with its access modes": (
        [volume("a"), volume("b", "20Gi", accessModes=["ReadWriteMany", "ReadWriteOnce"])],
        claim(accessModes=["ReadWriteMany"]),
        "b",
    ),
    "with its labels": (
        [volume("a"), volume("b", labels={"disk": "ssd"})],
        claim(selector={"matchLabels": {"disk": "ssd"}}),
        "b",
    ),
    "of its mode": ([volume("a"), volume("b", volumeMode="Block")], claim(volumeMode="Block"), "b"),
    "made for it": (
        [volume("a"), volume("b", "1Gi", claimRef={"namespace": "default", "name": "c"})],
        claim(),
        "b",
    ),
    "not made for another": ([volume("a", claimRef={"namespace": "default", "name": "d"})], claim(), ""),
    "the one it names": ([volume("a"), volume("b", "1Gi")], claim(volumeName="b"), "b"),
    "none": ([volume("a", "1Gi")], claim(), ""),
}


@pytest.mark.parametrize(("volumes", "wanted", "expected"), CHOICES.values(), ids=CHOICES.keys())
def test_which_volume(api, volumes, wanted, expected):
    """As the persistent volume controller chooses; whichever comes first."""
    for each in volumes:
        api.post(VOLUMES, each)
    api.post(CLAIMS, wanted)
    api.settle()
    assert bound(api) == (("Bound", expected) if expected else ("Pending", ""))


def test_a_volume_that_comes_later(api):
    """Both sides tell of the other."""
    api.post(CLAIMS, claim())
    api.settle()
    assert bound(api) == ("Pending", "")
    api.post(VOLUMES, volume())
    api.settle()
    assert bound(api) == ("Bound", "v")
    held, granted = api.get(f"{VOLUMES}/v"), api.get(f"{CLAIMS}/c")
    assert held["status"]["phase"] == "Bound"
    assert held["spec"]["claimRef"]["uid"] == granted["metadata"]["uid"]
    assert granted["status"]["capacity"] == {"storage": "10Gi"}
    assert granted["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"


def test_two_claims_never_share(api):
    """The second waits."""
    api.post(VOLUMES, volume())
    api.settle()
    assert phase(api) == "Available"
    for name in ("c", "d"):
        api.post(CLAIMS, claim(name))
    api.settle()
    assert (bound(api, "c"), bound(api, "d")) == (("Bound", "v"), ("Pending", ""))


def test_a_claim_that_goes(api):
    """Its volume is released and serves nobody else."""
    api.post(VOLUMES, volume())
    api.post(CLAIMS, claim())
    api.settle()
    api.call("DELETE", f"{CLAIMS}/c")
    api.post(CLAIMS, claim("d"))
    api.settle()
    assert (phase(api), bound(api, "d")) == ("Released", ("Pending", ""))


def test_a_volume_that_goes(api):
    """The claim has lost it."""
    api.post(VOLUMES, volume())
    api.post(CLAIMS, claim())
    api.settle()
    api.call("DELETE", f"{VOLUMES}/v")
    api.settle()
    assert bound(api) == ("Lost", "v")


# classes, fields of the claim -> reason and part of the message
WHY = {
    "no class": ([], {"storageClassName": ""}, "FailedBinding", "no storage class is set"),
    "a class that is not there": ([], {}, "ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found'),
    "a provisioner elsewhere": ([storage_class()], {}, "ExternalProvisioning", "'example.com/disk'"),
    "no provisioner": (
        [storage_class(provisioner="kubernetes.io/no-provisioner")],
        {},
        "ProvisioningFailed",
        "no volume plugin matched",
    ),
    "a class that waits": (
        [storage_class(volumeBindingMode="WaitForFirstConsumer")],
        {},
        "WaitForFirstConsumer",
        "waiting for first consumer",
    ),
}


@pytest.mark.parametrize(("classes", "fields", "reason", "told"), WHY.values(), ids=WHY.keys())
def test_why_a_claim_waits(api, classes, fields, reason, told):
    """One event says it, however often it is looked at."""
    for each in classes:
        api.post(CLASSES, each)
    api.post(CLAIMS, claim(**fields))
    api.settle()
    (event,) = api.get(EVENTS)["items"]
    assert (event["reason"], event["involvedObject"]["name"]) == (reason, "c") and told in event["message"]


def test_a_class_that_waits_leaves_volumes_alone(api):
    """Unless the claim names one."""
    api.post(CLASSES, storage_class(volumeBindingMode="WaitForFirstConsumer"))
    api.post(VOLUMES, volume())
    api.post(CLAIMS, claim())
    api.settle()
    assert bound(api) == ("Pending", "")
    api.post(CLAIMS, claim("d", volumeName="v"))
    api.settle()
    assert bound(api, "d") == ("Bound", "v")


def test_the_default_class(api):
    """A claim that names none gets it; one that asks for none does not."""
    api.post(CLASSES, storage_class("usual", "true"))
    unnamed = claim()
    del unnamed["spec"]["storageClassName"]
    assert api.post(CLAIMS, unnamed)["spec"]["storageClassName"] == "usual"
    assert api.post(CLAIMS, claim("d", storageClassName=""))["spec"]["storageClassName"] == ""


def row(rtype, obj, wide=False):
    return {c.name: c.cell(obj, 0.0) for c in columns_of(rtype) if c.name != "Age" and (wide or not c.priority)}


def test_columns(api):
    """As kubectl prints them."""
    api.post(CLASSES, storage_class("fast", "true"))
    api.post(VOLUMES, volume())
    api.post(CLAIMS, claim())
    api.settle()
    assert row(PERSISTENT_VOLUMES, api.get(f"{VOLUMES}/v"), wide=True) == {
        "Name": "v",
        "Capacity": "10Gi",
        "Access Modes": "RWO",
        "Reclaim Policy": "Retain",
        "Status": "Bound",
        "Claim": "default/c",
        "StorageClass": "fast",
        "VolumeAttributesClass": "<unset>",
        "Reason": "",
        "VolumeMode": "Filesystem",
    }
    assert row(PERSISTENT_VOLUME_CLAIMS, api.get(f"{CLAIMS}/c")) == {
        "Name": "c",
        "Status": "Bound",
        "Volume": "v",
        "Capacity": "10Gi",
        "Access Modes": "RWO",
        "StorageClass": "fast",
        "VolumeAttributesClass": "<unset>",
    }
    assert row(STORAGE_CLASSES, api.get(f"{CLASSES}/fast")) == {
        "Name": "fast (default)",
        "Provisioner": "example.com/disk",
        "ReclaimPolicy": "Delete",
        "VolumeBindingMode": "Immediate",
        "AllowVolumeExpansion": "false",
    }


def without_path(**spec):
    found = volume(**spec)
    del found["spec"]["hostPath"]
    return found


WRONG = {
    "no capacity": (VOLUMES, volume(capacity={}), "spec.capacity"),
    "no source": (VOLUMES, without_path(), "spec"),
    "two sources": (VOLUMES, volume(nfs={"server": "s", "path": "/p"}), "spec.nfs"),
    "local without nodes": (VOLUMES, without_path(local={"path": "/disk"}), "spec.nodeAffinity"),
    "no terms": (
        VOLUMES,
        volume(nodeAffinity={"required": {"nodeSelectorTerms": []}}),
        "spec.nodeAffinity.required.nodeSelectorTerms",
    ),
    "no access modes": (CLAIMS, claim(accessModes=[]), "spec.accessModes"),
    "an unknown access mode": (CLAIMS, claim(accessModes=["Write"]), "spec.accessModes"),
    "no amount": (CLAIMS, claim(resources={}), "spec.resources[storage]"),
    "no provisioner": (CLASSES, storage_class(provisioner=""), "provisioner"),
    "an unknown binding mode": (CLASSES, storage_class(volumeBindingMode="Soon"), "volumeBindingMode"),
}


@pytest.mark.parametrize(("url", "body", "field"), WRONG.values(), ids=WRONG.keys())
def test_what_is_refused(api, url, body, field):
    """422 that names the field."""
    code, answer = api.call("POST", url, body)
    assert (code, [cause["field"] for cause in answer["details"]["causes"]]) == (422, [field])


def test_what_stays(api):
    """A bound claim's volume, a volume's source, a class's provisioner."""
    api.post(CLASSES, storage_class())
    api.post(VOLUMES, volume())
    api.post(CLAIMS, claim())
    api.settle()
    for url, change in (
        (f"{CLAIMS}/c", {"spec": {"volumeName": "w"}}),
        (f"{VOLUMES}/v", {"spec": {"hostPath": {"path": "/other"}}}),
        (f"{CLASSES}/fast", {"provisioner": "other"}),
    ):
        code, answer = api.patch(url, change)
        assert (code, answer["reason"]) == (422, "Invalid"), url
