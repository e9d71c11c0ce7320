"""kubectl, in every version found on this machine."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedded.tests.conformance.clients import CODES, Refused
from embedded.tests.conformance.resources import Object, Resource

OLDEST_MINOR = 29
_SECONDS = 60
# How kubectl words the reasons of a Status.
_ERROR_FROM_SERVER = re.compile(r"Error from server(?: \((?P<reason>\w+)\))?: (?P<message>.*)", re.DOTALL)
_INVALID = re.compile(r"The (?:\S+ \"[^\"]*\"|request) is invalid:? ?(?P<message>.*)", re.DOTALL)


def _installed() -> list[Path]:
    """Every kubectl of this interpreter's environment and of PATH, with links followed."""
    folders = [Path(sys.executable).parent, *map(Path, os.environ.get("PATH", "").split(os.pathsep))]
    named = (folder / "kubectl" for folder in folders)
    return list(dict.fromkeys(path.resolve() for path in named if os.access(path, os.X_OK)))


def _minor(binary: Path) -> int:
    """The minor version of a binary; 0 when it does not say."""
    named = re.fullmatch(r"kubectl\.1\.(\d+)", binary.name)
    if named:
        return int(named[1])
    done = subprocess.run([binary, "version", "--client", "-o", "json"], capture_output=True, timeout=30, check=False)
    try:
        return int(re.sub(r"\D", "", json.loads(done.stdout)["clientVersion"]["minor"]))
    except (ValueError, KeyError):
        return 0


@functools.cache
def binaries() -> dict[str, Path]:
    """version such as `1.33` → binary, oldest first. A `kubectl` beside `kubectl.1.NN` only picks one of those."""
    found: dict[int, Path] = {}
    for installed in _installed():
        for binary in sorted(installed.parent.glob("kubectl.1.*")) or [installed]:
            if os.access(binary, os.X_OK):
                found.setdefault(_minor(binary), binary)
    return {f"1.{minor}": found[minor] for minor in sorted(found) if minor >= OLDEST_MINOR}


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def refusal(done: Done) -> Refused:
    """What the server said, read from what kubectl printed."""
    text = done.err.strip()
    if found := _INVALID.search(text):
        return Refused(422, "Invalid", found["message"])
    if found := _ERROR_FROM_SERVER.search(text):
        reason = found["reason"] or ""
        return Refused(CODES.get(reason, 0), reason, found["message"])
    if "Apply failed with" in text:
        return Refused(409, "Conflict", text)
    if "is not supported by" in text and "media types" in text:
        return Refused(415, "UnsupportedMediaType", text)
    if "strict decoding error" in text or "unknown field" in text:
        return Refused(400, "BadRequest", text)
    return Refused(0, "", text)


class Kubectl:
    """One binary, with a discovery cache of its own."""

    def __init__(self, binary: Path, version: str, kubeconfig: Path, home: Path) -> None:
        self.version = version
        self._start = [str(binary), "--kubeconfig", str(kubeconfig), "--cache-dir", str(home / "cache")]
        self._environment = {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "TZ": "UTC"}

    def close(self) -> None:
        """Nothing stays open between commands."""

    def command(self, *arguments: str) -> list[str]:
        return [*self._start, *arguments]

    def environment(self, **more: str) -> dict[str, str]:
        return self._environment | more

    def run(self, *arguments: str, stdin: Any = None, code: int | None = 0, **environment: str) -> Done:
        """What it printed; raises Refused when the exit code is another (None: any will do)."""
        text = stdin if isinstance(stdin, str | None) else json.dumps(stdin)
        finished = subprocess.run(
            self.command(*arguments),
            input=text or "",
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env=self.environment(**environment),
        )
        done = Done(finished.returncode, finished.stdout, finished.stderr)
        if code is not None and done.code != code:
            raise refusal(done) if done.code else AssertionError(f"exit code 0, not {code}: {done.out}{done.err}")
        return done

    def _shown(self, *arguments: str, stdin: Any = None) -> Object:
        found: Object = self.run(*arguments, stdin=stdin).json
        return found

    def create(self, resource: Resource, namespace: str, obj: Object, **options: Any) -> Object:
        return self._shown("create", "-f-", "-ojson", *_flags(namespace, options), stdin=obj)

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        return self._shown("get", resource.argument, name, "-ojson", *_flags(namespace, {}))

    def list(self, resource: Resource, namespace: str, labels: str = "", fields: str = "") -> list[Object]:
        selectors = ([f"--selector={labels}"] if labels else []) + ([f"--field-selector={fields}"] if fields else [])
        found = self.run("get", resource.argument, "-ojson", *selectors, *_flags(namespace, {})).json
        items: list[Object] = found["items"]
        return items

    def replace(self, resource: Resource, namespace: str, obj: Object, **options: Any) -> Object:
        return self._shown("replace", "-f-", "-ojson", *_flags(namespace, options), stdin=obj)

    def patch(
        self, resource: Resource, target: tuple[str, str], kind: str, body: Any, subresource: str = "", **options: Any
    ) -> Object:
        flags = [f"--type={kind}", f"--patch={json.dumps(body)}", "-ojson"]
        flags += [f"--subresource={subresource}"] if subresource else []
        return self._shown("patch", resource.argument, target[1], *flags, *_flags(target[0], options))

    def apply(
        self, resource: Resource, namespace: str, obj: Object, manager: str, force: bool = False, **options: Any
    ) -> Object:
        flags = ["--server-side", f"--field-manager={manager}", "-ojson", "--show-managed-fields"]
        flags += ["--force-conflicts"] if force else []
        return self._shown("apply", "-f-", *flags, *_flags(namespace, options), stdin=obj)

    def delete(self, resource: Resource, namespace: str, name: str, **options: Any) -> None:
        flags = [f"--cascade={options.pop('propagation').lower()}"] if "propagation" in options else []
        if "grace" in options:
            grace = options.pop("grace")
            flags += [f"--grace-period={grace}"] + (["--force"] if grace == 0 else [])
        self.run("delete", resource.argument, name, "--wait=false", *flags, *_flags(namespace, options))


def _flags(namespace: str, options: dict[str, Any]) -> list[str]:
    """The common flags; an option whose value is None is not given."""
    flags = [f"--namespace={namespace}"] if namespace else []
    named = {"dry_run": "dry-run", "field_manager": "field-manager", "field_validation": "validate"}
    for name, value in options.items():
        if value is not None:
            text = "server" if name == "dry_run" else str(value).lower() if name == "field_validation" else value
            flags.append(f"--{named.get(name, name)}={text}")
    return flags
