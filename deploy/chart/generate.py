"""Writes the chart's templates and definitions from the manifests of deploy/: `make chart`. A test compares them.

What is deployed is said in the kustomize base alone. Here stands only which of its values a chart's user may choose:
Places puts a template where the value was, and values.yaml must name the same default, or nothing is written. Lines
in which the overlay for cert-manager differs from the base become the two sides of a condition.
"""

from __future__ import annotations

import copy
import difflib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parent
DEPLOY = CHART.parent
NAMESPACE = "sublet-system"
"""In the manifests; in the chart, the namespace of the release."""
PROGRAMS = ("agent", "scheduler", "admission")
DEFINITION = "CustomResourceDefinition"
_RELEASE_NAMESPACE = "{{ .Release.Namespace }}"
_CERT_MANAGER = ".Values.certManager.enabled"
_NOTE = "# Generated from deploy/ by `make chart`; edits here are lost."
_CREATED_ONCE = {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": "hook-failed"}
"""Made where it is missing, and nobody's afterwards: an upgrade that found another's in its place would delete that."""
_PLACED = re.compile(r"^( *)(- )?(?:([\w./-]+): )?PLACE(\d+)(?:: null)?$", re.MULTILINE)
Object = dict[str, Any]


class ChartFault(Exception):
    """What somebody can mend; its text says how."""


def main() -> int:
    """Exit code 2 with one line on standard error for what somebody can mend."""
    try:
        for path, text in files().items():
            path.write_text(text)
            print(path.relative_to(DEPLOY.parent))
    except ChartFault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    return 0


def files() -> dict[Path, str]:
    """Everything that is generated, by where it belongs. Raises Fault."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    plain, issued = (_parts(rendered(folder), values) for folder in (".", "overlays/cert-manager"))
    koordinator = rendered("crds")
    found = {f"templates/{name}.yaml": either(plain.get(name, ""), text) for name, text in issued.items()}
    classes = [each for each in koordinator if each["kind"] == "PriorityClass"]
    found |= {f"templates/{name}.yaml": text for name, text in _parts(classes, values).items()}
    # A file each: one that is there already makes Helm pass over its whole file.
    found |= {_file(each): _documents([each]) for each in koordinator if each["kind"] == DEFINITION}
    return {CHART / name: f"{_NOTE}\n{text}" for name, text in sorted(found.items())}


@functools.cache
def rendered(folder: str) -> tuple[Object, ...]:
    """What `kubectl apply -k` would send. Raises Fault."""
    kubectl = shutil.which("kubectl", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if kubectl is None:
        raise ChartFault("there is no kubectl; make dev installs one")
    done = subprocess.run([kubectl, "kustomize", str(DEPLOY / folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChartFault(done.stderr.strip())
    if "{{" in done.stdout:
        raise ChartFault(f"deploy/{folder} holds {{{{, which Helm takes for a template")
    return tuple(yaml.safe_load_all(done.stdout))


class TemplatePlaces:
    """Where templates stand in an object: names while it is written as YAML, the templates themselves afterwards."""

    def __init__(self, values: Object) -> None:
        self._values = values
        self._templates: list[str] = []

    def put(self, template: str) -> str:
        """A name for it; INDENT in it becomes how far what belongs there is indented."""
        self._templates.append(template)
        return f"PLACE{len(self._templates) - 1}"

    def value(self, holder: Object, key: str, chosen: str) -> None:
        """What stands there is what values.yaml says. Raises Fault where its default is another."""
        default = functools.reduce(lambda found, name: found[name], chosen.split("."), self._values)
        if default != holder[key]:
            raise ChartFault(
                f"values.yaml: {chosen} is {json.dumps(default)}, but deploy/ says {json.dumps(holder[key])}"
            )
        nested = isinstance(default, dict | list)
        holder[key] = self.put(f"{{{{ toYaml .Values.{chosen} | nindent INDENT }}}}" if nested else _use(chosen))

    def optional(self, holder: Object, key: str, condition: str, value: str = ".") -> None:
        """One more key where the condition, which is `.` in the value, is not empty."""
        filled = f'{{{{- with {condition} }}}}{{{{ dict "{key}" {value} | toYaml | nindent INDENT }}}}{{{{ end }}}}'
        holder[self.put(filled)] = None

    def items(self, holder: Object, key: str, condition: str, value: str = ".") -> None:
        """More items of a list, which need not be there otherwise."""
        if key not in holder:
            self.optional(holder, key, condition, value)
            return
        holder[key].append(
            self.put(f"{{{{- with {condition} }}}}{{{{ toYaml {value} | nindent INDENT }}}}{{{{ end }}}}")
        )

    def fill(self, text: str) -> str:
        """The YAML with its templates."""
        return _PLACED.sub(self._filled, text).replace(NAMESPACE, _RELEASE_NAMESPACE)

    def _filled(self, match: re.Match[str]) -> str:
        template = self._templates[int(match[4])]
        if match[3] is None:
            return template.replace("INDENT", str(len(match[1])))
        nested = "nindent INDENT" in template
        template = template.replace("INDENT", str(len(match[1] + (match[2] or "")) + 2))
        return f"{match[1]}{match[2] or ''}{match[3]}:{'' if nested else ' '}{template}"


def _use(chosen: str) -> str:
    return f"{{{{ .Values.{chosen} }}}}"


def _parts(objects: Sequence[Object], values: Object) -> dict[str, str]:
    """Templates by the name of their file."""
    found: dict[str, str] = {}
    for each in objects:
        if each["kind"] != "Namespace":  # the release's own, which is there before the chart
            part = _part(each)
            found[part] = found.get(part, "") + _template(copy.deepcopy(each), TemplatePlaces(values))
    return found


def _file(definition: Object) -> str:
    return f"crds/{definition['spec']['names']['plural']}.yaml"


def _part(each: Object) -> str:
    if each["kind"] == "PriorityClass":
        return "priorityclasses"
    if each["apiVersion"].startswith("cert-manager.io/"):
        return "certificates"
    name = each["metadata"]["name"].removeprefix("sublet-").partition("-")[0]
    return name if name in PROGRAMS else "shared"


def _template(each: Object, places: TemplatePlaces) -> str:
    kind, name = each["kind"], each["metadata"]["name"]
    if kind in ("DaemonSet", "Deployment"):
        _workload(each, places)
    elif (kind, name) == ("ConfigMap", "sublet-fleet"):
        each["data"] = places.put('{{ include "sublet.fleet" . | nindent INDENT }}')
    elif kind == "ConfigMap":
        _settings(each, places)
    elif kind == "PriorityClass":
        each["metadata"]["annotations"] = dict(_CREATED_ONCE)
    text = places.fill(_documents([each]))
    condition = _condition(each)
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _condition(each: Object) -> str:
    """When the object is there at all; empty: always."""
    kind, name = each["kind"], each["metadata"]["name"]
    if kind.startswith("ValidatingAdmissionPolicy"):
        return 'include "sublet.policies" .'
    if kind == "PodDisruptionBudget":
        # One that is alone must not stop its node from being drained.
        return f"gt (int .Values.{_part(each)}.replicas) 1"
    if kind == "PriorityClass":
        return f'and .Values.priorityClasses (not (lookup "scheduling.k8s.io/v1" "PriorityClass" "" "{name}"))'
    return ""


def _workload(each: Object, places: TemplatePlaces) -> None:
    program, template = _part(each), each["spec"]["template"]
    of, pod = f".Values.{program}", template["spec"]
    if "replicas" in each["spec"]:
        places.value(each["spec"], "replicas", f"{program}.replicas")
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        _container(container, program, places)
    for key in ("affinity", "nodeSelector", "tolerations"):
        if key in pod:
            places.value(pod, key, f"{program}.{key}")
        else:
            places.optional(pod, key, f"{of}.{key}")
    places.optional(pod, "imagePullSecrets", f"coalesce {of}.image.pullSecrets .Values.image.pullSecrets")
    # Settings are read at the start.
    digest = '(dict "checksum/settings" (toYaml . | sha256sum))'
    places.optional(template["metadata"], "annotations", f"{of}.settings", digest)
    if program == "admission":
        volume = '(list (dict "name" "settings" "configMap" (dict "name" "sublet-admission-settings")))'
        places.items(pod, "volumes", f"{of}.settings", volume)


def _container(container: Object, program: str, places: TemplatePlaces) -> None:
    of, name = f".Values.{program}", container["name"]
    if not container["image"].startswith(f"sublet-{program}:"):
        raise ChartFault(f"{name}: image {container['image']} is not sublet-{program}, which values.yaml speaks of")
    container["image"] = places.put(f'{{{{ include "sublet.image" (list . "{program}") | quote }}}}')
    places.optional(container, "imagePullPolicy", f"coalesce {of}.image.pullPolicy .Values.image.pullPolicy")
    if name == program:
        places.value(container, "resources", f"{program}.resources")
    if name == "admission":
        mount = '(list (dict "name" "settings" "mountPath" "/etc/sublet/settings" "readOnly" true))'
        places.items(container, "args", f"{of}.settings", '(list "--settings=/etc/sublet/settings/settings.yaml")')
        places.items(container, "volumeMounts", f"{of}.settings", mount)
    places.items(container, "args", f"{of}.{'extraArgs' if name == program else name + 'Args'}")


def _settings(each: Object, places: TemplatePlaces) -> None:
    (key,) = each["data"]
    own = json.dumps(yaml.safe_load(each["data"][key])).replace("%", "%%").replace(NAMESPACE, "%[1]s")
    merged = f"mergeOverwrite (fromJson (printf `{own}` .Release.Namespace)) .Values.{_part(each)}.settings"
    each["data"][key] = places.put(f" |{{{{ {merged} | toYaml | nindent INDENT }}}}")


def either(plain: str, issued: str) -> str:
    """One text that is the first without cert-manager and the second with it."""
    first, second = plain.splitlines(keepends=True), issued.splitlines(keepends=True)
    return "".join(_chosen(first, second))


def _chosen(first: list[str], second: list[str]) -> Iterator[str]:
    for what, start, end, other, rest in difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if what == "equal":
            yield from first[start:end]
            continue
        yield f"{{{{- if {'not ' if what == 'delete' else ''}{_CERT_MANAGER} }}}}\n"
        yield from second[other:rest]
        if what == "replace":
            yield "{{- else }}\n"
        yield from first[start:end]
        yield "{{- end }}\n"


class _Dumper(yaml.SafeDumper):
    """Text of several lines as such, and in quotes whatever holds the namespace: one may be called `true` or `123`."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else '"' if NAMESPACE in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _documents(objects: Sequence[Object]) -> str:
    return "".join("---\n" + yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=100_000) for each in objects)


if __name__ == "__main__":
    sys.exit(main())
