"""Words that nobody serves, and Kueue's where a queue came meanwhile."""

from __future__ import annotations

from kube.objects import Metadata
from scheduler.cache.unserved_words import UnservedWords, named_by, sentences
from scheduler.ports import NamedObject

POD = Metadata("p", "ns", labels={"kueue.x-k8s.io/queue-name": "a"})
NAMED = NamedObject("ns", "p", "u")


def test_a_queue_of_that_name_serves_it() -> None:
    """Whenever it comes: what is not told yet is not told, and what is explained goes by what there is now."""
    words, found = UnservedWords(), named_by(POD)
    words.tell(NAMED, found)
    assert words.take({"default", "a"}) == [] and sentences(found, {"a"}) == ()
    words.tell(NAMED, found)
    ((pod, text),) = words.take({"default"})
    assert pod == NAMED and (text,) == sentences(found, {"default"})
    words.tell(NAMED, found)
    assert words.take({"default"}) == []
