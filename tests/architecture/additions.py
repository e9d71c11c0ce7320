"""One of each thing that CONTRIBUTING.md tells how to add: what goes into which file, and a program that finds it there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

END = ""
"""Of a text that goes to the end of its file; a file that does not exist is made of it."""


class Edit(NamedTuple):
    """Text that goes into a file, by the text that it stands behind, which the file holds once."""

    file: str
    texts: Mapping[str, str]


class Addition(NamedTuple):
    """The edits in order; `proof` is a program that fails where one of them is missing."""

    edits: tuple[Edit, ...]
    proof: str


SIGNAL = Addition(
    (
        Edit(
            "agent/core/observe/observation.py",
            {"    charge_bytes: int | None = None\n    kernel_bytes: int = 0\n": "    huge_page_bytes: int = 0\n"},
        ),
        Edit(
            "agent/core/observe/parse.py",
            {
                END: (
                    "\n\ndef huge_pages(text: bytes) -> int:\n"
                    '    """hugetlb.2MB.current, bytes."""\n'
                    "    return counter(text)\n"
                )
            },
        ),
        Edit(
            "agent/core/observe/files.py",
            {
                '    LEVEL = "all memory charged"\n': '    HUGE_PAGES = "huge pages"\n',
                '    FileKind(FilePart.LEVEL, "", "memory.current", parse.counter, _NUMBER_BYTES),\n': (
                    '    FileKind(FilePart.HUGE_PAGES, "", "hugetlb.2MB.current", parse.huge_pages, _NUMBER_BYTES),\n'
                ),
            },
        ),
        Edit(
            "agent/edge/cgroupfs.py",
            {
                "            kernel_bytes=self._kernel_bytes(*memory),\n": (
                    "            huge_page_bytes=self.value(FilePart.HUGE_PAGES) or 0,\n"
                )
            },
        ),
        Edit(
            "agent/report/journal.py",
            {"    kernel_bytes: int | UnsetType = UNSET\n": "    huge_page_bytes: int | UnsetType = UNSET\n"},
        ),
        Edit(
            "cgroup_fixtures/make.py",
            {
                '        f"{folder}/memory.current": f"{anon + file}\\n",\n': (
                    '        f"{folder}/hugetlb.2MB.current": "2097152\\n",\n'
                )
            },
        ),
        Edit("agent/core/evict/tick_facts.py", {"return sample.ends_bytes": " + sample.huge_page_bytes"}),
    ),
    """
import msgspec, pathlib, sys
from agent.core.evict.tick_facts import memory_bytes
from agent.core.observe.files import FILES, Role
from agent.core.observe.observation import NodeSample, Observation
from agent.core.observe.parse import huge_pages
from agent.edge.cgroupfs import CgroupReader
from agent.report.journal import SampleChange
from cgroup_fixtures.scenarios import open_scenario

root = pathlib.Path(sys.argv[1])
open_scenario("v2_cgroupfs_crio", root / "scenario").lay(0, root)
mount = root / "sys/fs/cgroup"
(pod,) = (path for path in (mount / "kubepods/besteffort").iterdir() if path.is_dir())
reader = CgroupReader(mount, FILES[2])
reader.place({f"/{pod.relative_to(mount)}": Role.BEST_EFFORT_POD})
(sample,) = reader.read().values()
assert sample.huge_page_bytes == 2 << 20, sample
assert SampleChange.__struct_fields__ == type(sample).__struct_fields__
seen = Observation(1.0, 1.0, NodeSample(1, 1, 1), sample, sample, pods={"u": sample})
assert memory_bytes(seen, "u") == sample.ends_bytes + (2 << 20)
try:
    huge_pages(b"2 MiB")
except ValueError:
    sys.exit()
raise AssertionError("text that is no number was read")
""",
)

NODE_SIGNAL = Addition(
    (
        Edit(
            "agent/core/observe/observation.py",
            {"    swapped_bytes: int = 0\n    total_bytes: int = 0\n": "    dirty_bytes: int = 0\n"},
        ),
        Edit(
            "agent/core/observe/parse.py",
            {
                END: (
                    "\n\ndef dirty(text: bytes) -> int:\n"
                    '    """Bytes of /proc/meminfo that wait to be written to a disk."""\n'
                    '    return _kibibytes(text, b"Dirty:") if b"Dirty:" in text else 0\n'
                )
            },
        ),
        Edit(
            "agent/edge/host.py",
            {
                "parse.swapped(text)": ", parse.dirty(text)",
                "total, available, free, swapped": ", dirty",
                "            swapped_bytes=swapped,\n": "            dirty_bytes=dirty,\n",
            },
        ),
        Edit(
            "cgroup_fixtures/make.py",
            {'"MemFree": available - pods.file_bytes, "MemAvailable": available': ', "Dirty": 4 << 20'},
        ),
        Edit(
            "agent/core/observe/usage.py",
            {"used = seen.memory_used_bytes + seen.swapped_bytes": " + seen.dirty_bytes"},
        ),
    ),
    """
import pathlib, sys
from agent.core.observe.observation import CgroupSample, Observation
from agent.core.observe.parse import dirty
from agent.core.observe.usage import UsageState, measure, windows_of
from agent.edge.host import HostReader
from cgroup_fixtures.scenarios import open_scenario
from model.strategy import ColocationStrategy

root = pathlib.Path(sys.argv[1])
open_scenario("v2_cgroupfs_crio", root / "scenario").lay(0, root)
sample = HostReader(root / "proc").sample()
assert sample.dirty_bytes == 4 << 20, sample
assert dirty(b"MemTotal: 8 kB\\n") == 0
none = CgroupSample(0, 0)
state = UsageState()
for second in (1.0, 2.0):
    seen = Observation(second, second, sample, none, none)
    state, usage = measure(state, seen, windows_of(ColocationStrategy(), 1.0))
assert usage.node.last.memory_bytes == sample.memory_used_bytes + (4 << 20), usage.node
""",
)

SCORE = Addition(
    (
        Edit(
            "model/scoring.py",
            {'    POD_AFFINITY = "InterPodAffinity"\n': '    FREE_PODS = "FreePods"\n'},
        ),
        Edit(
            "scheduler/core/scores/policy.py",
            {
                'Meta(description="Weight of preferred node affinity (NodeAffinity).")] = 2\n': (
                    "    free_pods_weight: Annotated["
                    '_Weight, Meta(description="Weight of room for more pods (FreePods).")] = 0\n'
                )
            },
        ),
        Edit(
            "scheduler/core/scores/node_scores.py",
            {
                "    return load_scores(ask.load, ask.snapshot, ask.pod_class, None if isinstance(at, slice) else at)\n": (
                    "\n\ndef _free_pods(ask: ScoreAsk, at: Amounts | slice) -> Amounts:\n"
                    '    """Room for more pods, of the pods a node may have."""\n'
                    '    column = ask.snapshot.resources.index("pods")\n'
                    "    return 100 * ask.free[at, column] // np.maximum(ask.snapshot.allocatable[at, column], 1)\n"
                ),
                '    RowScore(ScorePlugin.LOAD, attrgetter("load_weight"), _load),\n': (
                    '    RowScore(ScorePlugin.FREE_PODS, attrgetter("free_pods_weight"), _free_pods),\n'
                ),
            },
        ),
        Edit(
            "scheduler/settings_overlay.py",
            {'    ScorePlugin.SPREAD: "spread_weight",\n': '    ScorePlugin.FREE_PODS: "free_pods_weight",\n'},
        ),
    ),
    """
import numpy as np
from docs.generate import pages
from kube.dialects.koordinator.schedulerconfig import read
from model.node import Node
from model.pod.pod import Pod
from model.placement import ScoreTerm
from model.resources import ResourceVector
from model.scoring import ScorePlugin
from scheduler.settings_overlay import overlaid
from scheduler.core.snapshot.podclass import class_of
from scheduler.core.snapshot.snapshot import take
from scheduler.core.scores.node_scores import ScoreAsk, row_scores
from scheduler.core.scores.choice import choice
from scheduler.settings import SchedulerSettings

config = '''
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: koord-scheduler
    plugins:
      score:
        disabled: [{name: "*"}]
        enabled: [{name: FreePods, weight: 3}]
'''
policy = overlaid(SchedulerSettings(), read({"koord-scheduler-config": config})).settings.profiles[0].score
nodes = [Node(name, allocatable=ResourceVector({"pods": pods})) for name, pods in (("full", 10), ("empty", 20))]
taken = take({node.name: node for node in nodes}, {})
column = taken.resources.index("pods")
free = taken.allocatable.copy()
free[taken.names.index("full"), column] = 4
ask = ScoreAsk(taken, free, np.zeros_like(free), class_of(Pod("default", "p", "u")), policy)
rows = np.array([taken.names.index("empty"), taken.names.index("full")])
assert row_scores(ask)[rows].tolist() == [300, 120]
assert choice(ask, None, rows).scored().terms == (ScoreTerm(ScorePlugin.FREE_PODS, 3, 100, 40),)
assert "| `profiles[].score.free_pods_weight` | whole number 0 to 100 | `0` | Weight of room" in pages()["settings.md"]
""",
)

REASON = Addition(
    (
        Edit(
            "model/reason.py",
            {
                '    RESOURCES_LENT = "ResourcesLent"\n': '    DISK_FULL = "DiskFull"\n',
                '    Reason.RESOURCES_LENT: "cpu and memory became lent resources",\n': (
                    '    Reason.DISK_FULL: "the disk is full",\n'
                ),
            },
        ),
        Edit(
            "docs/troubleshooting.md",
            {
                "| `MemoryRoom` | nothing | tests/agent/core/limit/test_limit_news.py |\n": (
                    "| its disk is full | `DiskFull` | delete images | tests/agent/core/limit/test_limit_news.py |\n"
                )
            },
        ),
    ),
    """
import pathlib, re
from model.decision import Decision, Unit
from model.explain import lines, sentence
from model.reason import Reason

decision = Decision("node/n", "batch-memory", 0, Unit.BYTES, Reason("DiskFull"), ())
assert sentence(decision) == "batch-memory of node/n = 0: the disk is full"
assert lines(decision)[-1] == "  DiskFull: the disk is full"
assert re.search(r"^\\| [^|]+ \\| `DiskFull` \\| [^|]+ \\| \\S+ \\|$", pathlib.Path("docs/troubleshooting.md").read_text(), re.M)
""",
)

SETTING = Addition(
    (
        Edit(
            "scheduler/core/queueing/backoff.py",
            {
                END: """

class RestPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    \"\"\"Rest after a placement.\"\"\"

    seconds: Annotated[float, Meta(ge=0, le=60, description="Rest after each placement.")] = 1.0
"""
            },
        ),
        Edit(
            "scheduler/settings.py",
            {
                "import BackoffPolicy": ", RestPolicy",
                "    backoff: BackoffPolicy = BackoffPolicy()\n": "    rest: RestPolicy = RestPolicy()\n",
            },
        ),
    ),
    """
import pathlib, sys
from docs.generate import pages
from model.fault import ConfigurationFault
from scheduler.settings import load

file = pathlib.Path(sys.argv[1]) / "settings.yaml"
file.write_text("rest: {seconds: 2.5}")
assert (load(None).rest.seconds, load(file).rest.seconds) == (1.0, 2.5)
assert "| `rest.seconds` | number 0 to 60 | `1` | Rest after each placement. |" in pages()["settings.md"]
file.write_text("rest: {seconds: 61}")
try:
    load(file)
except ConfigurationFault as fault:
    assert "rest.seconds" in str(fault)
    sys.exit()
raise AssertionError("a wrong value was taken")
""",
)

AGENT_SETTING = Addition(
    (
        Edit(
            "model/strategy.py",
            {
                '    mid_static_cpu_reserved_pct: Annotated[_Share, Meta(description="mid-cpu in static mode.")] = 0\n': (
                    '    idle_cpu_pct: Annotated[_Share, Meta(description="Share of CPU that is never lent.")] = 0\n'
                )
            },
        ),
        Edit(
            "kube/dialects/koordinator/sloconfig.py",
            {
                '    mid_mode: MidMode | None = field(name="midReclaimMode", default=None)\n': (
                    '    idle_cpu_pct: _Share | None = field(name="idleCPUPercent", default=None)\n'
                )
            },
        ),
        Edit(
            "kube/dialects/coverage/settings.py",
            {
                '    _lends("degradeTimeMinutes", "older facts lend nothing", 5),\n': (
                    '    _lends("idleCPUPercent", "share of CPU that is never lent", 5),\n'
                )
            },
        ),
    ),
    """
import json, pathlib, sys
from agent.settings import load_settings
from docs.generate import pages
from kube.dialects.koordinator.sloconfig import colocation_layers, colocation_overlaid
from kube.objects import ConfigMap, Metadata
from model.fault import ConfigurationFault


def config(**fields):
    return ConfigMap(Metadata(name="slo-controller-config"), data={"colocation-config": json.dumps(fields)})


file = pathlib.Path(sys.argv[1]) / "settings.yaml"
file.write_text("colocation: {idle_cpu_pct: 5}")
strategy = load_settings(file).colocation
assert (load_settings(None).colocation.idle_cpu_pct, strategy.idle_cpu_pct) == (0, 5)
for layer in colocation_layers(config(idleCPUPercent=7)).of({}):
    strategy = colocation_overlaid(strategy, layer)
assert strategy.idle_cpu_pct == 7
assert "| `colocation.idle_cpu_pct` | whole number 0 to 100 | `0` | Share of CPU that is never lent. |" in pages()["settings.md"]
assert "| `colocation-config.idleCPUPercent` | honoured |" in pages()["koordinator.md"]
try:
    colocation_layers(config(idleCPUPercent=101))
except ConfigurationFault as fault:
    assert "idleCPUPercent" in str(fault)
    sys.exit()
raise AssertionError("a wrong value was taken")
""",
)

METRIC = Addition(
    (
        Edit(
            "model/metrics.py",
            {
                '        _counter("ticks_total", "Ticks since the start."),\n': (
                    '        _gauge("alive", "1 while ticks come in time."),\n'
                )
            },
        ),
        Edit(
            "agent/report/metrics.py",
            {
                '    yield "ticks_total", MetricSample(status.ticks)\n': (
                    '    yield "alive", MetricSample(status.alive)\n'
                )
            },
        ),
    ),
    """
from agent.report.metrics import Counters, collect
from agent.report.status import AgentStatus
from docs.generate import pages
from kube.exposition import registry_of
from model.metrics import AGENT

counters = Counters(**{name: tuple for name in Counters.__struct_fields__})
found = collect(AgentStatus(1.0, lambda: 0.0), counters)["alive"]
assert len(found) == 1, found
registry = registry_of(AGENT, lambda: {row.name: found if row.name == "alive" else [] for row in AGENT.rows})
assert registry.get_sample_value("sublet_agent_alive") == found[0].value
assert "| `sublet_agent_alive` | gauge |  |  | 1 while ticks come in time. |" in pages()["metrics.md"]
""",
)

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: closures.sublet.dev
spec:
  group: sublet.dev
  scope: Cluster
  names: {kind: Closure, listKind: ClosureList, plural: closures, singular: closure}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          description: A rack that is to be emptied.
          properties:
            spec:
              type: object
              description: What is closed.
              properties:
                rack: {type: string, description: The rack's name.}
"""
CLOSURE = {"apiVersion": "sublet.dev/v1alpha1", "kind": "Closure", "metadata": {"name": "c"}, "spec": {"rack": "r7"}}
"""An object of the kind; its definition serves it."""

KIND = Addition(
    (
        Edit("deploy/crds/closures.yaml", {END: DEFINITION}),
        Edit("deploy/crds/kustomization.yaml", {"  - podgroups.yaml\n": "  - closures.yaml\n"}),
        Edit(
            "kube/objects.py",
            {
                END: """

class ClosureSpec(msgspec.Struct, frozen=True):
    rack: str = ""


class Closure(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClosureSpec = ClosureSpec()
"""
            },
        ),
        Edit(
            "kube/dialects/sublet/closure.py",
            {
                END: """
from kube import objects
from model.fault import ConfigurationFault


def closed_rack(source: objects.Closure) -> str:
    \"\"\"The rack's name. Raises ConfigurationFault where there is none.\"\"\"
    if not source.spec.rack:
        raise ConfigurationFault(f"Closure {source.metadata.name}: spec.rack", "is empty", "name a rack")
    return source.spec.rack
"""
            },
        ),
        Edit(
            "scheduler/edge/cluster.py",
            {
                '    ("slo.koordinator.sh/v1alpha1/nodemetrics", objects.NodeMetric),\n': (
                    '    ("sublet.dev/v1alpha1/closures", objects.Closure),\n'
                )
            },
        ),
        Edit(
            "scheduler/cache/related_objects.py",
            {
                "from kube.dialects.upstream import core_objects, storage\n": (
                    "from kube.dialects.sublet.closure import closed_rack\n"
                ),
                "            objects.ClusterNetworkTopology: ({}, networktopology.layers),\n": (
                    "            objects.Closure: ({}, closed_rack),\n"
                ),
                "        return self._budgets\n": """
    @property
    def closed_racks(self) -> frozenset[str]:
        return frozenset(self._kinds[objects.Closure][0].values())
""",
            },
        ),
        Edit(
            "deploy/scheduler/rbac.yaml",
            {
                '    resources: ["clusternetworktopologies"]\n    verbs: ["list", "watch"]\n': (
                    '  - apiGroups: ["sublet.dev"]\n    resources: ["closures"]\n    verbs: ["list", "watch"]\n'
                )
            },
        ),
        Edit(
            "cli/simulate/cluster_objects.py",
            {
                "objects.ClusterNetworkTopology),\n": '    "Closure": Kind("sublet.dev", objects.Closure),\n',
            },
        ),
    ),
    """
import asyncio, json, pathlib, sys, yaml
from cli.simulate.cluster_objects import CLUSTER_KINDS
from cli.simulate.manifests import Manifests
from kube.client import KubeClient
from scheduler.edge.cluster import KubernetesWatch
from scheduler.cache.facts import ObjectSeen
from scheduler.cache.related_objects import RelatedObjectsCache

served = (pathlib.Path(sys.argv[1]) / "served.json").read_bytes()
nothing = b'{"metadata": {}, "items": []}'


class Server:
    async def request(self, method, path, query, body, content_type, timeout_seconds, most_bytes):
        return served if path == "/apis/sublet.dev/v1alpha1/closures" else nothing

    async def stream(self, path, query, idle_seconds):
        await asyncio.Event().wait()
        yield b""


async def seen():
    async def opening():
        return Server()

    facts = asyncio.Queue()
    watch = KubernetesWatch(KubeClient(opening), facts.put_nowait)
    async with asyncio.TaskGroup() as group:
        tasks = watch.start(group)
        await watch.synced()
        for task in tasks:
            task.cancel()
    return [facts.get_nowait() for _ in range(facts.qsize())]


refused = []
cache = RelatedObjectsCache(lambda where, metadata, message: refused.append(message))
for fact in asyncio.run(seen()):
    if isinstance(fact, ObjectSeen) and cache.reads(fact.change.object):
        cache.apply(fact.change)
assert cache.closed_racks == {"r7"}, cache.closed_racks
assert [message for message in refused if "Closure empty: spec.rack: is empty" in message], refused

found = Manifests(CLUSTER_KINDS)
for item in json.loads(served)["items"]:
    found.add({"apiVersion": "sublet.dev/v1alpha1", "kind": "Closure", **item}, "file")
assert [given.object.spec.rack for given in found.of("Closure")] == ["r7", ""]
assert "closures.yaml" in yaml.safe_load(pathlib.Path("deploy/crds/kustomization.yaml").read_text())["resources"]
assert pathlib.Path("deploy/crds/closures.yaml").exists()
roles = yaml.safe_load_all(pathlib.Path("deploy/scheduler/rbac.yaml").read_text())
rules = next(role["rules"] for role in roles if role["kind"] == "ClusterRole")
assert [rule["verbs"] for rule in rules if "closures" in rule["resources"]] == [["list", "watch"]]
""",
)

ADDITIONS = {
    "signal of a cgroup": SIGNAL,
    "signal of the node": NODE_SIGNAL,
    "score": SCORE,
    "reason": REASON,
    "metric": METRIC,
    "setting of the scheduler": SETTING,
    "setting of the agent": AGENT_SETTING,
    "kind": KIND,
}
"""By the first column of CONTRIBUTING.md's table."""
