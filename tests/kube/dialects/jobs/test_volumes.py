"""Volumes of a Volcano Job."""

from __future__ import annotations

from kube.dialects.jobs.volumes import JobVolume, with_volumes

TEMPLATE = {
    "spec": {
        "containers": [{"name": "main", "volumeMounts": [{"name": "own", "mountPath": "/own"}]}],
        "initContainers": [{"name": "before"}],
        "volumes": [{"name": "own", "emptyDir": {}}],
    }
}


def test_every_container_mounts_them_beside_its_own() -> None:
    found = with_volumes(TEMPLATE, [JobVolume("/data", "claim"), JobVolume("/scratch")])["spec"]
    mounts = [[each["mountPath"] for each in container["volumeMounts"]] for container in found["containers"]]
    assert mounts == [["/own", "/data", "/scratch"]]
    assert [each["mountPath"] for each in found["initContainers"][0]["volumeMounts"]] == ["/data", "/scratch"]
    assert found["volumes"][1:] == [
        {"name": "job-volume-0", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "job-volume-1", "emptyDir": {}},
    ]


def test_without_any_the_template_stays() -> None:
    assert with_volumes(TEMPLATE, []) is TEMPLATE
