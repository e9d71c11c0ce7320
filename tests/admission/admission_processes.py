"""The embedded API server and the admission program as processes, with the webhooks that deploy/ installs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from kube.x509 import Authority

ROOT = Path(__file__).parents[2]
KUBECTL = Path(sys.executable).with_name("kubectl")
_PATIENCE_SECONDS = 60.0


class AdmissionCluster:
    """An API server with Sublet's definitions and webhooks; `admission` starts a replica."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        now = datetime.now(UTC)
        authority = Authority.create("test", now, timedelta(days=1))
        pair = authority.issue("api", ("127.0.0.1", "localhost"), now, timedelta(days=1))
        for name, content in (("ca", authority.certificate_pem), ("crt", pair.certificate), ("key", pair.key)):
            (folder / f"api.{name}").write_bytes(content)
        (folder / "tokens").write_text('admin-token,admin,admin,"system:masters"\n')
        tls = ["--tls-cert", folder / "api.crt", "--tls-key", folder / "api.key", "--token-file", folder / "tokens"]
        crds = ["--bootstrap", ROOT / "deploy/crds/clustercolocationprofiles.yaml"]
        more = [
            "--bootstrap",
            ROOT / "deploy/crds/priorityclasses.yaml",
            "--bootstrap",
            ROOT / "deploy/crds/nodeslos.yaml",
        ]
        self._start("api", ["-m", "embedded.apiserver", "--listen", "127.0.0.1:0", *tls, *crds, *more])
        self.kubeconfig = folder / "kubeconfig"
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise

    def _set_up(self) -> None:
        self._write_kubeconfig(self.ready("api"))
        self.apply(*[namespace("sublet-system"), namespace("koordinator-system")])
        self.apply(*yaml.safe_load_all((ROOT / "deploy/admission/webhooks.yaml").read_text()))

    def admission(self, name: str = "one", settings: Mapping[str, Any] | None = None, *flags: str) -> dict[str, str]:
        """Start a replica, wait until it reviews, and lead the API server to it; what its ready file says."""
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(settings or {}))
        where = ["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--kubeconfig", self.kubeconfig]
        self._start(
            name, ["-m", "admission", *where, "--settings", self.folder / f"{name}.yaml", "--identity", name, *flags]
        )
        ready: dict[str, str] = self.ready(name)
        self.apply(service(ready["reviews"]))
        return ready

    def stop(self, process: subprocess.Popen[bytes] | None = None) -> int:
        """End the newest program in order; its exit code."""
        process = process or self._processes.pop()
        process.send_signal(signal.SIGTERM)
        return process.wait(_PATIENCE_SECONDS)

    def close(self) -> None:
        while self._processes:
            self.stop()

    def kubectl(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """Standard output; with another code than 0 standard error."""
        command = [str(KUBECTL), "--kubeconfig", str(self.kubeconfig), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr + self.log("one")
        return done.stderr if code else done.stdout

    def apply(self, *objects: Mapping[str, Any], code: int = 0) -> str:
        return self.kubectl(
            "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), code=code
        )

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def until(self, condition: Callable[[], Any]) -> Any:
        end = time.monotonic() + _PATIENCE_SECONDS
        while not (found := condition()):
            assert time.monotonic() < end, self.log("one")
            time.sleep(0.05)
        return found

    def ready(self, name: str) -> Any:
        path = self.folder / f"{name}.json"
        self.until(lambda: path.exists() or self._processes[-1].poll() is not None)
        assert path.exists(), self.log(name)
        return json.loads(path.read_text())

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def _start(self, name: str, arguments: list[Any]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, *map(str, arguments), "--ready-file", str(self.folder / f"{name}.json")]
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT))

    def _write_kubeconfig(self, ready: Mapping[str, Any]) -> None:
        cluster = {
            "server": f"https://{ready['address']}:{ready['port']}",
            "certificate-authority": str(self.folder / "api.ca"),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "admin-token"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def service(address: str) -> dict[str, Any]:
    """Of the webhooks, which run beside the cluster and not in a pod of it."""
    metadata = {
        "name": "sublet-admission",
        "namespace": "sublet-system",
        "annotations": {"sublet.dev/address": f"https://{address}"},
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 443}]}}
