"""What a pod is refused for besides its containers' basics. Places and words are those of kube-apiserver 1.34.2."""

import pytest

PODS = "/api/v1/namespaces/default/pods"
MIRROR = "kubernetes.io/config.mirror"


def pod(spec, **metadata):
    return {"metadata": {"name": "p", **metadata}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def of(**container):
    return {"containers": [{"name": "c", "image": "i", **container}]}


def volume(**source):
    return {"volumes": [{"name": "v", **source}]}


def mounted(**mount):
    mounts = [{"name": "v", "mountPath": "/a", **mount}]
    return volume(emptyDir={}) | of(volumeMounts=mounts)


def secured(**context):
    return {"securityContext": context}


def spread(**constraint):
    whole = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", **constraint}
    return {"topologySpreadConstraints": [whole]}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": "a", "labelSelector": {}}
C = "spec.containers[0]"
V = "spec.volumes[0]"
BOUNDS = "must be between 0 and 2147483647, inclusive"
REFUSED = {
    "huge pages alone": (of(resources={"limits": {"hugepages-2Mi": "2Mi"}}), f"{C}.resources", "require cpu or memory"),
    "an alias without address": ({"hostAliases": [{"hostnames": ["a"]}]}, "spec.hostAliases[0].ip", "valid IP address"),
    "an alias of no name": (
        {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["A_b"]}]},
        "spec.hostAliases[0].hostnames[0]",
        "RFC 1123 subdomain",
    ),
    "processes of pod and host": (
        {"shareProcessNamespace": True, "hostPID": True},
        "spec.securityContext.shareProcessNamespace",
        "cannot both be enabled",
    ),
    "another system": ({"os": {"name": "mac"}}, "spec.os", 'supported values: "linux", "windows"'),
    "a system without name": ({"os": {}}, "spec.os.name", "Required value"),
    "Linux in Windows": (
        {"os": {"name": "windows"}, "hostPID": True},
        "spec.hostPID",
        "cannot be set for a windows pod",
    ),
    "the host's network for users of its own": (
        {"hostUsers": False, "hostNetwork": True},
        "spec.hostNetwork",
        "when `hostUsers` is false",
    ),
    "ephemeral containers": (
        {"ephemeralContainers": [{"name": "e", "image": "i"}]},
        "spec.ephemeralContainers",
        "cannot be set on create",
    ),
    "no handler": (of(lifecycle={"postStart": {}}), f"{C}.lifecycle.postStart", "must specify a handler type"),
    "two handlers": (
        of(lifecycle={"preStop": {"exec": {"command": ["a"]}, "httpGet": {"port": 80}}}),
        f"{C}.lifecycle.preStop.httpGet",
        "may not specify more than 1 handler type",
    ),
    "no command": (of(lifecycle={"preStop": {"exec": {}}}), f"{C}.lifecycle.preStop.exec.command", "Required value"),
    "a hook that sleeps too long": (
        of(lifecycle={"preStop": {"sleep": {"seconds": 100}}}),
        f"{C}.lifecycle.preStop.sleep",
        "less than terminationGracePeriodSeconds (30)",
    ),
    "a resize policy": (
        of(resizePolicy=[{"resourceName": "x", "restartPolicy": "NotRequired"}]),
        f"{C}.resizePolicy",
        'supported values: "cpu", "memory"',
    ),
    "a claim of nothing": ({"resourceClaims": [{"name": "a"}]}, "spec.resourceClaims[0]", "must specify one of"),
    "a claim that nobody has": (of(resources={"claims": [{"name": "z"}]}), f"{C}.resources.claims[0]", "Not found"),
    "a field of the container": (
        of(env=[{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "x"}}}]),
        f"{C}.env[0].valueFrom.resourceFieldRef.resource",
        "Unsupported value",
    ),
    "a device that is no volume": (
        of(volumeDevices=[{"name": "v", "devicePath": "/a"}]),
        f"{C}.volumeDevices[0].name",
        "Not found",
    ),
    "mounts for others": (
        mounted(mountPropagation="Bidirectional"),
        f"{C}.volumeMounts.mountPropagation",
        "only to privileged containers",
    ),
    "recursively, but for writing": (
        mounted(recursiveReadOnly="Enabled"),
        f"{C}.volumeMounts.recursiveReadOnly",
        "only be specified when readOnly is true",
    ),
    "two paths below": (
        mounted(subPath="a", subPathExpr="b"),
        f"{C}.volumeMounts[0].subPathExpr",
        "mutually exclusive",
    ),
    "a negative size": (volume(emptyDir={"sizeLimit": "-1"}), f"{V}.emptyDir.sizeLimit", "valid resource quantity"),
    "a volume of no claim": (volume(persistentVolumeClaim={}), f"{V}.persistentVolumeClaim.claimName", "Required"),
    "a path upwards": (volume(hostPath={"path": "/a/../b"}), f"{V}.hostPath.path", "must not contain '..'"),
    "a kind of path": (volume(hostPath={"path": "/a", "type": "x"}), f"{V}.hostPath.type", "Unsupported value"),
    "a mode": (volume(secret={"secretName": "a", "defaultMode": 1024}), f"{V}.secret.defaultMode", "0777 (octal)"),
    "an item without path": (
        volume(configMap={"name": "a", "items": [{"key": "a"}]}),
        f"{V}.configMap.items[0].path",
        "Required value",
    ),
    "a file of nothing": (volume(downwardAPI={"items": [{"path": "a"}]}), f"{V}.downwardAPI", "one of fieldRef and"),
    "a token for seconds": (
        volume(projected={"sources": [{"serviceAccountToken": {"expirationSeconds": 5, "path": "t"}}]}),
        f"{V}.projected.sources[0].serviceAccountToken.expirationSeconds",
        "less than 10 minutes",
    ),
    "one path twice": (
        volume(projected={"sources": [{"secret": {"name": "a", "items": [{"key": "a", "path": "x"}] * 2}}]}),
        f"{V}.projected",
        "conflicting duplicate paths",
    ),
    "a claim made of nothing": (volume(ephemeral={}), f"{V}.ephemeral.volumeClaimTemplate", "Required value"),
    "a relative export": (volume(nfs={"server": "s", "path": "a"}), f"{V}.nfs.path", "must be an absolute path"),
    "no driver": (volume(csi={}), f"{V}.csi.driver", "RFC 1123 subdomain"),
    "a user": (secured(runAsUser=-1), "spec.securityContext.runAsUser", BOUNDS),
    "a group": (secured(supplementalGroups=[1 << 32]), "spec.securityContext.supplementalGroups[0]", BOUNDS),
    "a policy": (secured(fsGroupChangePolicy="x"), "spec.securityContext.fsGroupChangePolicy", "Unsupported value"),
    "a profile": (secured(seccompProfile={"type": "x"}), "spec.securityContext.seccompProfile.type", "Unsupported"),
    "no profile": (
        secured(appArmorProfile={"type": "Localhost"}),
        "spec.securityContext.appArmorProfile.localhostProfile",
        "must be set when AppArmor type is Localhost",
    ),
    "a profile from elsewhere": (
        secured(seccompProfile={"type": "Localhost", "localhostProfile": "/a"}),
        "spec.securityContext.seccompProfile.localhostProfile",
        "must be a relative path",
    ),
    "a kernel setting": (secured(sysctls=[{"name": "a b"}]), "spec.securityContext.sysctls[0].name", "match regex"),
    "a setting of the host": (
        secured(sysctls=[{"name": "net.a"}]) | {"hostNetwork": True},
        "spec.securityContext.sysctls[0].name",
        "may not be specified when 'hostNetwork' is true",
    ),
    "a container's user": (of(securityContext={"runAsUser": -1}), f"{C}.securityContext.runAsUser", BOUNDS),
    "privileged, and not": (
        of(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
        f"{C}.securityContext",
        "`privileged` to true",
    ),
    "all of /proc": (
        of(securityContext={"procMount": "Unmasked"}),
        f"{C}.securityContext.procMount",
        "`hostUsers` must be false",
    ),
    "no DNS": ({"dnsPolicy": "None"}, "spec.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"),
    "a name server": ({"dnsConfig": {"nameservers": ["x"]}}, "spec.dnsConfig.nameservers[0]", "valid IP address"),
    "many of them": ({"dnsConfig": {"nameservers": ["1.1.1.1"] * 4}}, "spec.dnsConfig.nameservers", "more than 3"),
    "a search domain": ({"dnsConfig": {"searches": ["a!"]}}, "spec.dnsConfig.searches[0]", "RFC 1123 subdomain"),
    "a header": (
        of(livenessProbe={"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": "c"}]}}),
        f"{C}.livenessProbe.httpGet.httpHeaders",
        "a valid HTTP header must consist of",
    ),
    "a field of another version": (
        of(env=[{"name": "a", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}}]),
        f"{C}.env[0].valueFrom.fieldRef.fieldPath",
        "unsupported pod version: v2",
    ),
    "a device of files": (
        volume(emptyDir={}) | of(volumeDevices=[{"name": "v", "devicePath": "/d"}]),
        f"{C}.volumeDevices[0].name",
        "can only use volume source type of PersistentVolumeClaim or Ephemeral",
    ),
    "domains of a preference": (
        spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2),
        "spec.topologySpreadConstraints[0].minDomains",
        "can only use minDomains if whenUnsatisfiable=DoNotSchedule",
    ),
    "keys of no selector": (
        spread(matchLabelKeys=["a"]),
        "spec.topologySpreadConstraints[0].matchLabelKeys",
        "must not be specified when labelSelector is not set",
    ),
    "no key": (
        spread(matchLabelKeys=["a b"], labelSelector={}),
        "spec.topologySpreadConstraints[0].matchLabelKeys[0]",
        "name part must consist of",
    ),
    "a label of no node": (
        {
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["-1"]}]}]
                    }
                }
            }
        },
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]",
        "a valid label must be",
    ),
    "a map of no name": (
        of(envFrom=[{"configMapRef": {"name": "A_"}}]),
        f"{C}.envFrom[0].configMapRef.name",
        "RFC 1123 subdomain",
    ),
    "a secret's key": (
        of(env=[{"name": "a", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a b"}}}]),
        f"{C}.env[0].valueFrom.secretKeyRef.key",
        "a valid config key must consist of",
    ),
    "no domain": (spread(minDomains=0), "spec.topologySpreadConstraints[0].minDomains", "must be greater than zero"),
    "an inclusion": (
        spread(nodeTaintsPolicy="q"),
        "spec.topologySpreadConstraints[0].nodeTaintsPolicy",
        'supported values: "Honor", "Ignore"',
    ),
    "a label alike and not": (
        {"affinity": {"podAffinity": {REQUIRED: [TERM | {"matchLabelKeys": ["x"], "mismatchLabelKeys": ["x"]}]}}},
        f"spec.affinity.podAffinity.{REQUIRED}[0].matchLabelKeys[0]",
        "exists in both matchLabelKeys and mismatchLabelKeys",
    ),
    "an option": ({"dnsConfig": {"options": [{"value": "x"}]}}, "spec.dnsConfig.options[0]", "must not be empty"),
}


@pytest.mark.parametrize(("spec", "field", "words"), REFUSED.values(), ids=REFUSED)
def test_a_pod_is_refused(api, spec, field, words):
    """For one reason, which is named."""
    code, status = api.call("POST", PODS, pod(spec))
    assert code == 422, status
    told = {cause["field"]: cause["message"] for cause in status["details"]["causes"]}
    assert words in told[field], told


def test_a_mirror_pod_has_a_node(api):
    """It stands for one that a node runs already."""
    code, status = api.call("POST", PODS, pod({}, annotations={MIRROR: "x"}))
    assert code == 422 and "must set spec.nodeName if mirror pod annotation is set" in status["message"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"runtimeClassName": "kata"}, 'RuntimeClass "kata" not found'),
        ({"overhead": {"cpu": "1"}}, "Pod Overhead set without corresponding RuntimeClass"),
    ],
)
def test_no_runtime_class_is_there(api, spec, words):
    """So none can be asked for."""
    code, status = api.call("POST", PODS, pod(spec))
    assert (code, status["reason"]) == (403, "Forbidden") and words in status["message"]


ACCEPTED = {
    "DNS of its own": {
        "dnsPolicy": "None",
        "dnsConfig": {
            "nameservers": ["1.1.1.1"],
            "searches": ["a.svc.cluster.local", "_x.a.", "."],
            "options": [{"name": "ndots", "value": "2"}],
        },
    },
    "security": secured(
        runAsUser=0,
        fsGroup=2**31 - 1,
        seccompProfile={"type": "RuntimeDefault"},
        sysctls=[{"name": "net.ipv4.ip_local_port_range", "value": "1 2"}],
    ),
    "a hook that sleeps": of(lifecycle={"preStop": {"sleep": {"seconds": 30}}}),
    "spread": spread(minDomains=2, nodeTaintsPolicy="Honor", nodeAffinityPolicy="Ignore"),
    "a port of no protocol": of(ports=[{"containerPort": 80, "protocol": ""}]),
    "a device": volume(persistentVolumeClaim={"claimName": "c"})
    | of(volumeDevices=[{"name": "v", "devicePath": "/d"}]),
    "huge pages": of(resources={"limits": {"hugepages-2Mi": "2Mi", "memory": "1Gi"}}),
    "a field of the container": of(env=[{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]),
    "all the volumes": {
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "b", "hostPath": {"path": "/a", "type": "Directory"}},
            {"name": "c", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "d", "downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.labels['a']"}}]}},
        ]
    },
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED)
def test_a_pod_is_accepted(api, spec):
    """As on a real cluster."""
    api.post(PODS, pod(spec))


def required(*terms):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def term(*values):
    return {"matchExpressions": [{"key": value, "operator": "Exists"} for value in values]}


NARROWED = {
    "another label": ({"nodeSelector": {"a": "b", "c": "d"}}, None),
    "other nodes": ({"nodeSelector": {"a": "c"}}, "spec.nodeSelector"),
    "any node": ({"nodeSelector": {"a": None}}, "spec.nodeSelector"),
    "one more wish": ({"affinity": required(term("a", "b"))}, None),
    "another wish": ({"affinity": required(term("b"))}, f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"),
    "a choice": (
        {"affinity": required(term("a"), term("b"))},
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
    ),
    "other pods": ({"affinity": {"podAffinity": {REQUIRED: [TERM]}}}, "spec"),
    "the same in other words": ({"hostNetwork": None, "priorityClassName": None}, None),
}


@pytest.mark.parametrize(("change", "field"), NARROWED.values(), ids=NARROWED)
def test_a_gated_pod_may_be_left_fewer_nodes(api, change, field):
    """And nothing else."""
    gated = {"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}, "affinity": required(term("a"))}
    api.post(PODS, pod(gated | {"hostNetwork": False, "priorityClassName": ""}))
    code, found = api.patch(f"{PODS}/p", {"spec": change})
    told = [cause["field"] for cause in found["details"]["causes"]] if code != 200 else [None]
    assert told == [field]
