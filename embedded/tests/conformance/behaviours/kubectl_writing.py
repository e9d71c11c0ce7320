"""kubectl's commands that change something: what they do and what they print."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, CRON_JOBS, JOBS, PODS, SECRETS, config_map, container


@behaviour(pages.kubectl("create configmap"), Via.KUBECTL, Via.ALL)
def kubectl_creates_a_config_map_from_literals(t: Case) -> None:
    assert t.kubectl("create", "configmap", "m", "--from-literal=a=1").out == "configmap/m created\n"
    assert t.now(CONFIG_MAPS, "m")["data"] == {"a": "1"}


@behaviour(pages.kubectl("create secret"), Via.KUBECTL)
def kubectl_creates_a_generic_secret(t: Case) -> None:
    assert t.kubectl("create", "secret", "generic", "s", "--from-literal=a=1").out == "secret/s created\n"
    found = t.now(SECRETS, "s")
    assert (found["type"], found["data"]) == ("Opaque", {"a": "MQ=="})


@behaviour(pages.kubectl("create namespace"), Via.KUBECTL)
def kubectl_creates_and_deletes_a_namespace(t: Case) -> None:
    name = t.unique("made")
    t.removed_later(r.NAMESPACES, name)
    assert t.kubectl("create", "namespace", name).out == f"namespace/{name} created\n"
    assert t.kubectl("delete", "namespace", name).out.startswith(f'namespace "{name}" deleted')
    assert not t.exists(r.NAMESPACES, name)


@behaviour(pages.kubectl("create priorityclass"), Via.KUBECTL)
def kubectl_creates_a_priority_class(t: Case) -> None:
    name = t.unique("class")
    t.removed_later(r.PRIORITY_CLASSES, name)
    t.kubectl("create", "priorityclass", name, "--value=77", "--description=seven")
    found = t.now(r.PRIORITY_CLASSES, name)
    assert (found["value"], found["description"]) == (77, "seven")


@behaviour(pages.kubectl("create serviceaccount"), Via.KUBECTL)
def kubectl_creates_a_service_account(t: Case) -> None:
    assert t.kubectl("create", "serviceaccount", "robot").out == "serviceaccount/robot created\n"
    assert t.exists(r.SERVICE_ACCOUNTS, "robot")


@behaviour(pages.kubectl("create job"), Via.KUBECTL, Via.ALL)
def kubectl_creates_a_job_with_a_command(t: Case) -> None:
    assert t.kubectl("create", "job", "j", "--image=busybox", "--", "true").out == "job.batch/j created\n"
    assert t.now(JOBS, "j")["spec"]["template"]["spec"]["containers"][0]["command"] == ["true"]


@behaviour(pages.kubectl("create job"), Via.KUBECTL)
def kubectl_creates_a_job_from_a_cron_job(t: Case) -> None:
    t.given(CRON_JOBS, r.cron_job("c"))
    t.kubectl("create", "job", "now", "--from=cronjob/c")
    meta = t.now(JOBS, "now")["metadata"]
    assert meta["annotations"]["cronjob.kubernetes.io/instantiate"] == "manual"
    assert meta["ownerReferences"][0]["name"] == "c"


@behaviour(pages.kubectl("create cronjob"), Via.KUBECTL)
def kubectl_creates_a_cron_job(t: Case) -> None:
    t.kubectl("create", "cronjob", "c", "--image=busybox", "--schedule=0 0 1 1 *", "--", "true")
    assert t.now(CRON_JOBS, "c")["spec"]["schedule"] == "0 0 1 1 *"


@behaviour(pages.kubectl("run"), Via.KUBECTL)
def kubectl_runs_a_pod(t: Case) -> None:
    overrides = json.dumps({"spec": {"schedulerName": r.NO_SCHEDULER}})
    assert t.kubectl("run", "p", "--image=app:1", f"--overrides={overrides}").out == "pod/p created\n"
    assert t.now(PODS, "p")["metadata"]["labels"] == {"run": "p"}


@behaviour(pages.kubectl("create"), Via.KUBECTL)
def kubectl_creates_all_documents_of_a_stream(t: Case) -> None:
    stream = yaml.safe_dump_all([config_map("a"), config_map("b")])
    assert t.kubectl("create", "-f-", stdin=stream).out == "configmap/a created\nconfigmap/b created\n"


@behaviour(pages.kubectl("create"), Via.KUBECTL)
def kubectl_prints_what_it_would_create(t: Case) -> None:
    out = t.kubectl("create", "configmap", "m", "--dry-run=server", "-oname").out
    assert out == "configmap/m\n" and not t.exists(CONFIG_MAPS, "m")


@behaviour(pages.DECLARATIVE, Via.KUBECTL, Via.ALL)
def kubectl_apply_creates_configures_and_leaves_unchanged(t: Case) -> None:
    told = []
    for value in ("1", "2", "2"):
        told.append(t.kubectl("apply", "-f-", stdin=config_map("m", a=value)).out)
    assert told == ["configmap/m created\n", "configmap/m configured\n", "configmap/m unchanged\n"]


@behaviour(pages.DECLARATIVE, Via.KUBECTL)
def kubectl_apply_removes_what_it_no_longer_finds_and_keeps_what_others_added(t: Case) -> None:
    t.kubectl("apply", "-f-", stdin=config_map("m", a="1", b="2"))
    t.change(CONFIG_MAPS, "m", {"data": {"others": "x"}})
    t.kubectl("apply", "-f-", stdin=config_map("m", a="1"))
    assert t.now(CONFIG_MAPS, "m")["data"] == {"a": "1", "others": "x"}


@behaviour(pages.DECLARATIVE, Via.KUBECTL)
def kubectl_apply_merges_lists_by_key(t: Case) -> None:
    def with_image(image: str) -> dict[str, object]:
        spec = r.pod_spec(restartPolicy="Never", containers=[container("a", image=image), container("b")])
        return r.cron_job("c", jobTemplate={"spec": {"template": {"spec": spec}}})

    t.kubectl("apply", "-f-", stdin=with_image("one"))
    assert t.kubectl("apply", "-f-", stdin=with_image("two")).out == "cronjob.batch/c configured\n"
    found = t.now(CRON_JOBS, "c")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert [(item["name"], item["image"]) for item in found] == [("a", "two"), ("b", "registry.example/app:1")]


@behaviour(pages.kubectl("apply"), Via.KUBECTL)
def kubectl_applies_custom_objects(t: Case) -> None:
    custom = t.custom({"type": "object", "properties": {"size": {"type": "integer"}}})
    told = [
        t.kubectl("apply", "-f-", stdin=custom.object("w", spec={"size": size})).out.split()[-1] for size in (1, 2, 2)
    ]
    assert told == ["created", "configured", "unchanged"] and t.now(custom, "w")["spec"] == {"size": 2}


@behaviour(pages.APPLY + "#upgrading-from-client-side-apply-to-server-side-apply", Via.KUBECTL, Via.ALL)
def kubectl_moves_from_client_side_to_server_side_apply(t: Case) -> None:
    t.kubectl("apply", "-f-", stdin=config_map("m", a="1", b="2"))
    out = t.kubectl("apply", "--server-side", "-f-", stdin=config_map("m", a="2")).out
    assert out == "configmap/m serverside-applied\n"
    found = t.now(CONFIG_MAPS, "m")
    assert found["data"] == {"a": "2"}
    assert "kubectl" in [entry["manager"] for entry in found["metadata"]["managedFields"]]


@behaviour(pages.APPLY + "#conflicts", Via.KUBECTL, Via.ALL)
def kubectl_explains_a_conflict_and_how_to_go_on(t: Case) -> None:
    t.raw.apply(CONFIG_MAPS, t.ns, config_map("m"), "alice")
    done = t.kubectl("apply", "--server-side", "-f-", stdin=config_map("m", key="mine"), code=1)
    assert 'Apply failed with 1 conflict: conflict with "alice": .data.key' in done.err
    assert "--force-conflicts" in done.err
    t.kubectl("apply", "--server-side", "--force-conflicts", "-f-", stdin=config_map("m", key="mine"))
    assert t.now(CONFIG_MAPS, "m")["data"] == {"key": "mine"}


@behaviour(pages.kubectl("diff"), Via.KUBECTL, Via.ALL)
def kubectl_diff_tells_by_its_exit_code(t: Case) -> None:
    t.kubectl("apply", "-f-", stdin=config_map("m", a="1"))
    before = t.now(CONFIG_MAPS, "m")
    assert t.kubectl("diff", "-f-", stdin=config_map("m", a="1")).out == ""
    out = t.kubectl("diff", "-f-", stdin=config_map("m", a="2"), code=1).out
    assert '-  a: "1"' in out and '+  a: "2"' in out
    assert t.now(CONFIG_MAPS, "m") == before


@behaviour(pages.kubectl("diff"), Via.KUBECTL)
def kubectl_diff_shows_what_would_be_new(t: Case) -> None:
    out = t.kubectl("diff", "--server-side", "-f-", stdin=config_map("m", a="2"), code=1).out
    assert "+kind: ConfigMap" in out and not t.exists(CONFIG_MAPS, "m")


@behaviour(pages.kubectl("label"), Via.KUBECTL)
def kubectl_labels_only_over_what_it_may_overwrite(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"a": "1"}))
    assert t.kubectl("label", "configmap", "m", "b=2").out == "configmap/m labeled\n"
    assert "already has a value" in t.kubectl("label", "configmap", "m", "a=2", code=1).err
    t.kubectl("label", "configmap", "m", "a=2", "b-", "--overwrite")
    assert t.now(CONFIG_MAPS, "m")["metadata"]["labels"] == {"a": "2"}


@behaviour(pages.kubectl("annotate"), Via.KUBECTL)
def kubectl_annotates(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    assert t.kubectl("annotate", "configmap", "m", "example.com/why=because").out == "configmap/m annotated\n"
    assert t.now(CONFIG_MAPS, "m")["metadata"]["annotations"] == {"example.com/why": "because"}


@behaviour(pages.kubectl("taint"), Via.KUBECTL)
def kubectl_taints_and_untaints_a_node(t: Case) -> None:
    name = t.node()
    assert t.kubectl("taint", "node", name, "example.com/a=b:NoSchedule").out == f"node/{name} tainted\n"
    taint = {"key": "example.com/a", "value": "b", "effect": "NoSchedule"}
    assert taint in t.now(r.NODES, name)["spec"]["taints"]
    assert t.kubectl("taint", "node", name, "example.com/a:NoSchedule-").out == f"node/{name} untainted\n"
    assert taint not in t.now(r.NODES, name)["spec"].get("taints", [])


@behaviour(pages.kubectl("cordon"), Via.KUBECTL, Via.ALL)
def kubectl_cordons_and_uncordons_a_node(t: Case) -> None:
    name = t.node()
    assert t.kubectl("cordon", name).out == f"node/{name} cordoned\n"
    assert t.now(r.NODES, name)["spec"]["unschedulable"] is True
    assert t.kubectl("uncordon", name).out == f"node/{name} uncordoned\n"
    assert "unschedulable" not in t.now(r.NODES, name)["spec"]


@behaviour(pages.kubectl("drain"), Via.KUBECTL)
def kubectl_drain_evicts_what_runs_on_a_node(t: Case) -> None:
    name = t.node()
    t.given(PODS, r.pod("p", nodeName=name))
    t.change(PODS, "p", {"status": {"phase": "Succeeded"}}, "status")
    done = t.kubectl("drain", name, "--force", "--timeout=20s")
    assert f"node/{name} drained" in done.out and "evicting pod" in done.out + done.err
    assert not t.exists(PODS, "p") and t.now(r.NODES, name)["spec"]["unschedulable"] is True


@behaviour(pages.kubectl("drain"), Via.KUBECTL, needs="controllers")
def kubectl_drain_waits_for_a_budget(t: Case) -> None:
    name = t.node()
    t.given(PODS, r.pod("p", {"app": "web"}, nodeName=name))
    t.defer(lambda: t.raw.delete(PODS, t.ns, "p", grace=0))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    t.change(PODS, "p", {"status": ready}, "status")
    t.given(r.BUDGETS, r.budget("b", "web", minAvailable=1))
    t.eventually(lambda: t.now(r.BUDGETS, "b").get("status", {}).get("expectedPods") == 1, "the budget's status")
    done = t.kubectl("drain", name, "--force", "--timeout=1s", code=1)
    assert "Cannot evict pod as it would violate the pod's disruption budget" in done.err
    assert "deletionTimestamp" not in t.now(PODS, "p")["metadata"]


@behaviour(pages.kubectl("replace"), Via.KUBECTL)
def kubectl_replaces_by_force_with_a_new_object(t: Case) -> None:
    uid = t.given(CONFIG_MAPS, config_map("m", a="1"))["metadata"]["uid"]
    out = t.kubectl("replace", "--force", "-f-", stdin=config_map("m", a="2")).out
    assert "configmap/m replaced" in out
    found = t.now(CONFIG_MAPS, "m")
    assert found["data"] == {"a": "2"} and found["metadata"]["uid"] != uid


@behaviour(pages.kubectl("edit"), Via.KUBECTL)
def kubectl_edit_sends_what_the_editor_leaves(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", a="before"))
    script = (
        "import sys, pathlib; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text().replace('before', 'after'))"
    )
    path = Path(t.binary.environment()["HOME"]) / "editor.py"
    path.write_text(script)
    out = t.kubectl("edit", "configmap", "m", KUBE_EDITOR=f"{sys.executable} {path}").out
    assert out == "configmap/m edited\n" and t.now(CONFIG_MAPS, "m")["data"] == {"a": "after"}


@behaviour(pages.kubectl("set image"), Via.KUBECTL)
def kubectl_sets_an_image(t: Case) -> None:
    t.given(PODS, r.pod("p"))
    assert t.kubectl("set", "image", "pod/p", "main=app:9").out == "pod/p image updated\n"
    assert t.now(PODS, "p")["spec"]["containers"][0]["image"] == "app:9"


@behaviour(pages.kubectl("delete"), Via.KUBECTL, Via.ALL)
def kubectl_deletes_and_waits(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    assert t.kubectl("delete", "configmap", "m").out.startswith('configmap "m" deleted')
    assert not t.exists(CONFIG_MAPS, "m")
    assert t.kubectl("delete", "configmap", "m", "--ignore-not-found").out == ""


@behaviour(pages.kubectl("delete"), Via.KUBECTL)
def kubectl_deletes_all_of_a_type(t: Case) -> None:
    for name in "ab":
        t.given(r.LEASES, r.lease(name))
    t.kubectl("delete", "leases", "--all")
    assert t.raw.list(r.LEASES, t.ns) == []


@behaviour("https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/", Via.KUBECTL)
def kubectl_prunes_what_is_no_longer_applied(t: Case) -> None:
    kept, gone = (config_map(name, {"part-of": "it"}) for name in ("kept", "gone"))
    t.kubectl("apply", "-f-", stdin={"apiVersion": "v1", "kind": "List", "items": [kept, gone]})
    out = t.kubectl("apply", "--prune", "-l", "part-of=it", "-f-", stdin=kept).out
    assert "configmap/kept unchanged" in out and "configmap/gone pruned" in out
    assert t.exists(CONFIG_MAPS, "kept") and not t.exists(CONFIG_MAPS, "gone")
