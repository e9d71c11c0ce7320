"""Every namespace has its service account and knows the cluster's authority."""

import asyncio

from embedded.apiserver.controller_manager import Controllers

ACCOUNTS = "/api/v1/namespaces/a/serviceaccounts"
AUTHORITY = "/api/v1/namespaces/a/configmaps/kube-root-ca.crt"


def with_authority(api):
    api.controllers = Controllers(api.resources, api.core.writes, "PEM")
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    api.settle()


def test_both_are_made_and_made_again(api):
    """Also in the namespaces that were there first; a changed authority is put right."""
    with_authority(api)
    assert api.get("/api/v1/namespaces/default/serviceaccounts/default")
    assert api.get(f"{ACCOUNTS}/default") and api.get(AUTHORITY)["data"] == {"ca.crt": "PEM"}
    api.call("DELETE", f"{ACCOUNTS}/default")
    api.call("DELETE", AUTHORITY)
    api.settle()
    assert api.get(f"{ACCOUNTS}/default")
    api.patch(AUTHORITY, {"data": {"ca.crt": "forged"}})
    api.settle()
    assert api.get(AUTHORITY)["data"] == {"ca.crt": "PEM"}


def test_neither_keeps_a_namespace_alive(api):
    """Nothing is made in a namespace that is going."""
    with_authority(api)
    api.call("DELETE", "/api/v1/namespaces/a")
    api.settle()
    assert api.call("GET", "/api/v1/namespaces/a")[0] == 404


def test_without_an_authority_there_is_only_the_account(api):
    """Nothing is claimed that is not known."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    asyncio.run(api.controllers.settle())
    assert api.get(f"{ACCOUNTS}/default") and api.call("GET", AUTHORITY)[0] == 404
