"""The history of a DaemonSet's template."""

from embedded.apiserver.workloads.controller_revisions import forgotten, hash_of, history_of, new_revision
from embedded.tests.apiserver.workload_objects import template
from embedded.tests.apiserver.workloads.test_daemon_set_plan import daemon_set


def of(image, **more):
    found = daemon_set(**more)
    found["spec"]["template"] = template(image)
    return found


def recorded(*images):
    return [new_revision(of(image), number) for number, image in enumerate(images, 1)]


def test_a_template_is_found_in_its_revision():
    """And is the newest from then on."""
    history = history_of(of("a"), recorded("a", "b", "c"))
    assert (history.current["revision"], history.number, [each["revision"] for each in history.old]) == (1, 4, [2, 3])


def test_a_new_template_gets_the_next_number():
    """Its record carries the hash that its pods are labelled with."""
    history = history_of(of("d"), recorded("a", "b"))
    assert (history.current, history.number) == (None, 3)
    made = new_revision(of("d"), 3)
    assert made["metadata"]["name"] == f"ag-{hash_of(made)}" and made["metadata"]["labels"]["app"] == "web"
    assert made["data"] == {"spec": {"template": template("d") | {"$patch": "replace"}}}


def test_of_two_records_of_one_template_the_newest_counts():
    """The other is surplus."""
    first, second = recorded("a", "a")
    second["metadata"]["name"] = "ag-other"
    history = history_of(of("a"), [second, first])
    assert (history.current["metadata"]["name"], history.surplus) == ("ag-other", (first,))


def test_the_oldest_beyond_the_limit_go_unless_pods_are_of_them():
    """revisionHistoryLimit counts the others than the current one."""
    held = recorded("a", "b", "c", "d")
    wanted = of("d", revisionHistoryLimit=1)
    history = history_of(wanted, held)
    assert forgotten(wanted, history, set()) == (held[0]["metadata"]["name"], held[1]["metadata"]["name"])
    assert forgotten(wanted, history, {hash_of(held[0])}) == (held[1]["metadata"]["name"], held[2]["metadata"]["name"])
