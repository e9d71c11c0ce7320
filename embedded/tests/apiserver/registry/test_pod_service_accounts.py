"""What new pods get from their service account."""

import pytest

PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}


def container(name="c", *mounts):
    return {"name": name, "image": "i"} | ({"volumeMounts": list(mounts)} if mounts else {})


def pod(meta=None, **spec):
    return {"metadata": {"name": "p"} | (meta or {}), "spec": {"containers": [container()]} | spec}


def mounted(spec):
    """Where each container has which volume."""
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    return {c["name"]: [(m["name"], m["mountPath"]) for m in c.get("volumeMounts", [])] for c in containers}


def test_every_container_has_the_token(api):
    """In one projected volume, which renews it, beside the authority and the namespace."""
    spec = api.post(PODS, pod(initContainers=[container("first")]))["spec"]
    (volume,) = spec["volumes"]
    name = volume["name"]
    assert name.startswith("kube-api-access-") and len(name) == len("kube-api-access-") + 5
    reference = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": reference}]}},
        ],
    }
    assert mounted(spec) == {"first": [(name, MOUNT)], "c": [(name, MOUNT)]}
    assert spec["containers"][0]["volumeMounts"][0]["readOnly"] is True


AUTOMOUNT = {
    "nobody says anything": (None, None, True),
    "the account has it off": (False, None, False),
    "the pod has it off": (None, False, False),
    "the pod wants it all the same": (False, True, True),
    "the pod does not want it all the same": (True, False, False),
}


@pytest.mark.parametrize(("account", "own", "expected"), AUTOMOUNT.values(), ids=AUTOMOUNT)
def test_the_pod_decides_before_its_account(api, account, own, expected):
    """And without either the token is there."""
    spec = {} if own is None else {"automountServiceAccountToken": own}
    more = {} if account is None else {"automountServiceAccountToken": account}
    api.post(ACCOUNTS, {"metadata": {"name": "robot"}} | more)
    made = api.post(PODS, pod(serviceAccountName="robot", **spec))["spec"]
    assert ("volumes" in made) is expected


def test_what_is_mounted_in_its_place_stays(api):
    """A container that has something there gets no token; without any need there is no volume."""
    held = {"name": "own", "mountPath": MOUNT}
    containers = [container("a", held), container("b")]
    spec = api.post(PODS, pod(containers=containers, volumes=[{"name": "own", "emptyDir": {}}]))["spec"]
    token = spec["volumes"][1]["name"]
    assert mounted(spec) == {"a": [("own", MOUNT)], "b": [(token, MOUNT)]}
    body = pod({"name": "q"}, containers=containers[:1], volumes=[{"name": "own", "emptyDir": {}}])
    assert [volume["name"] for volume in api.post(PODS, body)["spec"]["volumes"]] == ["own"]


def test_a_pod_made_from_another_keeps_its_volume(api):
    """One such volume is enough, whatever its name ends in."""
    spec = api.post(PODS, pod())["spec"]
    again = api.post(PODS, {"metadata": {"name": "q"}, "spec": spec})["spec"]
    assert (again["volumes"], again["containers"]) == (spec["volumes"], spec["containers"])


def test_pull_secrets_come_from_the_account(api):
    """Unless the pod has its own."""
    api.post(ACCOUNTS, {"metadata": {"name": "robot"}, "imagePullSecrets": [{"name": "registry"}]})
    found = api.post(PODS, pod(serviceAccountName="robot"))["spec"]
    own = api.post(PODS, pod({"name": "q"}, serviceAccountName="robot", imagePullSecrets=[{"name": "own"}]))["spec"]
    assert (found["imagePullSecrets"], own["imagePullSecrets"]) == ([{"name": "registry"}], [{"name": "own"}])


def test_a_pod_needs_its_account(api):
    """Whichever of the two fields names it."""
    for spec in ({"serviceAccountName": "robot"}, {"serviceAccount": "robot"}):
        code, status = api.call("POST", PODS, pod(**spec))
        assert (code, status["reason"]) == (403, "Forbidden")
        assert status["message"] == (
            'pods "p" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found'
        )
    api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    found = api.post(PODS, pod(serviceAccount="robot"))["spec"]
    assert (found["serviceAccountName"], found["serviceAccount"]) == ("robot", "robot")


def test_the_default_account_need_not_be_waited_for(api):
    """A namespace that has only just been made takes pods."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "new"}})
    found = api.post("/api/v1/namespaces/new/pods", pod())["spec"]
    assert found["serviceAccountName"] == "default"
    assert api.get("/api/v1/namespaces/new/serviceaccounts/default")
    api.settle()
    assert len(api.get("/api/v1/namespaces/new/serviceaccounts")["items"]) == 1


def test_a_mirror_pod_has_no_account(api):
    """It is its node's alone."""
    spec = api.post(PODS, pod(MIRROR, nodeName="n"))["spec"]
    assert {"serviceAccountName", "serviceAccount", "volumes"}.isdisjoint(spec)


def projected(source):
    return {"volumes": [{"name": "v", "projected": {"sources": [source]}}]}


MIRRORS = {
    "an account": ({"serviceAccountName": "default"}, "a mirror pod may not reference service accounts"),
    "a secret": ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "may not reference secrets"),
    "a projected secret": (projected({"secret": {"name": "s"}}), "may not reference secrets"),
    "a secret's key": (
        {
            "containers": [
                container() | {"env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
            ]
        },
        "may not reference secrets",
    ),
    "a secret's keys": (
        {"containers": [container() | {"envFrom": [{"secretRef": {"name": "s"}}]}]},
        "may not reference secrets",
    ),
    "a token": (projected({"serviceAccountToken": {"path": "t"}}), "may not use ServiceAccountToken"),
}


@pytest.mark.parametrize(("spec", "words"), MIRRORS.values(), ids=MIRRORS)
def test_a_mirror_pod_reads_nothing_of_the_api(api, spec, words):
    """The API could not keep such a promise for a pod it did not make."""
    code, status = api.call("POST", PODS, pod(MIRROR, nodeName="n", **spec))
    assert (code, words in status["message"]) == (403, True), status
