"""Admission webhooks, served by the test process; a cluster that cannot reach it is not asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, MUTATING, VALIDATING, Object, Resource, config_map
from embedded.tests.conformance.webhook_server import Answer, Webhook, allowed, denied, patching, serving

_NAME = "hook.conformance.example"


def _registered(t: Case, kind: Resource, **fields: Any) -> None:
    """A configuration for the case's namespace."""
    own = {"matchLabels": {"kubernetes.io/metadata.name": t.ns}}
    hook = r.webhook(_NAME, **({"namespaceSelector": own} | fields))
    t.given(kind, kind.object(t.unique("hook"), webhooks=[hook]))


@contextlib.contextmanager
def _hooked(t: Case, kind: Resource, answer: Answer, **fields: Any) -> Iterator[Webhook]:
    if t.foreign:
        pytest.skip("another cluster does not reach a webhook in this process")
    with serving(answer) as webhook:
        _registered(t, kind, clientConfig=webhook.config, **fields)
        yield webhook


def _rule(*operations: str, resources: tuple[str, ...] = ("configmaps",)) -> list[Object]:
    return [{"apiGroups": [""], "apiVersions": ["v1"], "resources": [*resources], "operations": [*operations]}]


@behaviour(pages.WEBHOOK_RESPONSE, fast=Via.CODE)
def a_mutating_webhook_changes_the_object(t: Case) -> None:
    with _hooked(t, MUTATING, patching({"op": "add", "path": "/data/added", "value": "yes"})):
        found = t.create(CONFIG_MAPS, config_map("m"))
    assert found["data"] == {"key": "value", "added": "yes"}


@behaviour(pages.WEBHOOK_RESPONSE, fast=Via.CODE)
def a_validating_webhook_refuses_with_its_words(t: Case) -> None:
    with (
        _hooked(t, VALIDATING, denied(code=403, message="not on a Sunday", reason="Forbidden")),
        t.refused("Forbidden", f'admission webhook "{_NAME}" denied the request: not on a Sunday'),
    ):
        t.create(CONFIG_MAPS, config_map("m"))
    assert not t.exists(CONFIG_MAPS, "m")


@behaviour(pages.WEBHOOK_RESPONSE, Via.RAW | Via.KUBECTL)
def the_warnings_of_a_webhook_reach_the_client(t: Case) -> None:
    with _hooked(t, VALIDATING, allowed(warnings=["this may hurt"])):
        if t.by_raw:
            answer = t.raw.answer("POST", t.path(CONFIG_MAPS), body=config_map("m"))
            assert "this may hurt" in answer.headers["Warning"]
        else:
            assert "Warning: this may hurt" in t.kubectl("create", "configmap", "m").err


@behaviour(pages.WEBHOOK_REVIEWS, Via.RAW)
def a_review_names_object_kind_operation_and_user(t: Case) -> None:
    with _hooked(t, VALIDATING, allowed()) as webhook:
        t.create(CONFIG_MAPS, config_map("m"))
    request = webhook.asked[0]
    assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (request["operation"], request["namespace"], request["name"]) == ("CREATE", t.ns, "m")
    assert request["object"]["data"] == {"key": "value"} and request.get("oldObject") is None
    assert request["userInfo"]["username"] and request["dryRun"] is False


@behaviour(pages.WEBHOOK_REVIEWS, Via.RAW)
def updates_and_deletions_bring_the_old_object(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with _hooked(t, VALIDATING, allowed(), rules=_rule("UPDATE", "DELETE")) as webhook:
        t.change(CONFIG_MAPS, "m", {"data": {"key": "new"}})
        t.delete(CONFIG_MAPS, "m")
    update, deletion = webhook.asked
    assert (update["operation"], deletion["operation"]) == ("UPDATE", "DELETE")
    assert (update["oldObject"]["data"], update["object"]["data"]) == ({"key": "value"}, {"key": "new"})
    assert deletion["oldObject"]["data"] == {"key": "new"} and deletion.get("object") is None


@behaviour(pages.WEBHOOK_RULES, Via.RAW)
def only_what_a_rule_names_is_reviewed(t: Case) -> None:
    with _hooked(t, VALIDATING, allowed(), rules=_rule("CREATE")) as webhook:
        t.create(CONFIG_MAPS, config_map("m"))
        t.create(r.SECRETS, r.SECRETS.object("s"))
        t.change(CONFIG_MAPS, "m", {"data": {"key": "new"}})
    assert [(asked["operation"], asked["name"]) for asked in webhook.asked] == [("CREATE", "m")]


@behaviour(pages.WEBHOOK_RULES, Via.RAW)
def a_sub_resource_is_reviewed_when_a_rule_names_it(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    with _hooked(t, VALIDATING, allowed(), rules=_rule("UPDATE", resources=("pods/status",))) as webhook:
        t.change(r.PODS, "p", {"metadata": {"labels": {"a": "b"}}})
        t.change(r.PODS, "p", {"status": {"message": "x"}}, "status")
    assert [asked["subResource"] for asked in webhook.asked] == ["status"]


@behaviour(pages.WEBHOOK_OBJECTS, Via.RAW)
def an_object_selector_chooses_by_labels(t: Case) -> None:
    with _hooked(t, VALIDATING, allowed(), objectSelector={"matchLabels": {"watch": "me"}}) as webhook:
        t.create(CONFIG_MAPS, config_map("free"))
        t.create(CONFIG_MAPS, config_map("m", {"watch": "me"}))
    assert [asked["name"] for asked in webhook.asked] == ["m"]


@behaviour(pages.WEBHOOK_NAMESPACES, Via.RAW)
def a_namespace_selector_chooses_by_the_labels_of_the_namespace(t: Case) -> None:
    other = t.namespace({"reviewed": t.ns})
    with _hooked(t, VALIDATING, allowed(), namespaceSelector={"matchLabels": {"reviewed": t.ns}}) as webhook:
        t.create(CONFIG_MAPS, config_map("here"))
        t.raw.create(CONFIG_MAPS, other, config_map("there"))
    assert [asked["name"] for asked in webhook.asked] == ["there"]


@behaviour(pages.WEBHOOK_EFFECTS, Via.RAW)
def a_dry_run_is_reviewed_as_one(t: Case) -> None:
    with _hooked(t, VALIDATING, allowed(), sideEffects="NoneOnDryRun") as webhook:
        t.create(CONFIG_MAPS, config_map("m"), dry_run="All")
    assert [asked["dryRun"] for asked in webhook.asked] == [True]


@behaviour(pages.WEBHOOK_FAILURES, Via.CODE)
def a_webhook_that_cannot_be_reached_fails_the_request(t: Case) -> None:
    _registered(t, VALIDATING)
    trial: dict[str, Any] = {"body": config_map("trial"), "query": {"dryRun": "All"}}
    # A server learns of a configuration by watching it, a moment later.
    t.eventually(lambda: t.raw.answer("POST", t.path(CONFIG_MAPS), **trial).code == 500, "the webhook in force")
    with t.refused("InternalError", f'failed calling webhook "{_NAME}"'):
        t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.WEBHOOK_FAILURES, Via.CODE)
def a_webhook_that_cannot_be_reached_may_be_ignored(t: Case) -> None:
    _registered(t, VALIDATING, failurePolicy="Ignore")
    t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.WEBHOOK_FAILURES, Via.RAW)
def a_webhook_of_another_authority_is_not_trusted(t: Case) -> None:
    with serving(allowed()) as stranger, _hooked(t, MUTATING, allowed()) as webhook:
        webhook.asked.clear()
        _registered(t, VALIDATING, clientConfig={"url": stranger.url, "caBundle": webhook.ca_bundle})
        with t.refused("InternalError", "certificate"):
            t.create(CONFIG_MAPS, config_map("m"))
    assert stranger.asked == []


@behaviour(pages.WEBHOOK_RESPONSE, Via.RAW)
def what_a_webhook_makes_invalid_is_refused(t: Case) -> None:
    bad = patching({"op": "add", "path": "/metadata/labels", "value": {"a": "no good!"}})
    with _hooked(t, MUTATING, bad), t.refused("Invalid", "metadata.labels"):
        t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.WEBHOOKS, Via.RAW)
def validating_webhooks_see_what_mutating_ones_made(t: Case) -> None:
    patch = patching({"op": "add", "path": "/data/added", "value": "yes"})
    with _hooked(t, MUTATING, patch), _hooked(t, VALIDATING, allowed()) as webhook:
        t.create(CONFIG_MAPS, config_map("m"))
    assert webhook.asked[0]["object"]["data"] == {"key": "value", "added": "yes"}


@behaviour(pages.WEBHOOK_REINVOCATION, Via.RAW)
def a_mutating_webhook_is_asked_again_when_a_later_one_changed_the_object(t: Case) -> None:
    patch = patching({"op": "add", "path": "/data/added", "value": "yes"})
    with _hooked(t, MUTATING, allowed(), reinvocationPolicy="IfNeeded") as first, _hooked(t, MUTATING, patch) as second:
        t.create(CONFIG_MAPS, config_map("m"))
    assert [("added" in asked["object"]["data"]) for asked in first.asked] == [False, True]
    assert len(second.asked) == 1


@behaviour(pages.WEBHOOK_RESPONSE, Via.RAW)
def a_webhook_may_hold_a_deletion(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    refusal = denied(code=403, message="keep it", reason="Forbidden")
    with _hooked(t, VALIDATING, refusal, rules=_rule("DELETE")), t.refused("Forbidden", "keep it"):
        t.delete(CONFIG_MAPS, "m")
    assert t.exists(CONFIG_MAPS, "m")


@behaviour(pages.WEBHOOK_TIMEOUTS, Via.CODE)
def a_webhook_configuration_has_its_defaults(t: Case) -> None:
    hook = r.webhook(_NAME)
    for field in ("timeoutSeconds", "namespaceSelector"):
        hook.pop(field)
    hook["rules"][0]["resources"] = ["nosuchthings"]
    found = t.create(MUTATING, MUTATING.object(t.unique("hook"), webhooks=[hook]))["webhooks"][0]
    expected = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": 10,
        "reinvocationPolicy": "Never",
    }
    assert {key: found[key] for key in expected} == expected
    assert found["rules"][0]["scope"] == "*" and found["namespaceSelector"] == found["objectSelector"] == {}


@behaviour(pages.WEBHOOK_TIMEOUTS, Via.RAW | Via.KUBECTL)
def a_malformed_webhook_configuration_is_refused(t: Case) -> None:
    for wrong, field in (
        ({"timeoutSeconds": 31}, "timeoutSeconds"),
        ({"sideEffects": "Some"}, "sideEffects"),
        ({"name": "unqualified"}, "name"),
        ({"admissionReviewVersions": []}, "admissionReviewVersions"),
        ({"clientConfig": {"url": "http://127.0.0.1/"}}, "clientConfig.url"),
    ):
        with t.refused("Invalid", f"webhooks[0].{field}"):
            t.create(VALIDATING, VALIDATING.object(t.unique("hook"), webhooks=[r.webhook(_NAME) | wrong]))
