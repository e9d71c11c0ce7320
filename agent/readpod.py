"""One pod as the agent reads it: an error of ours ends nothing, and what a node has no use for is left out."""

from __future__ import annotations

import msgspec

from kube import objects
from kube.dialects.upstream import core_objects
from model.fault import ConfigurationFault
from model.pod.pod import Pod
from model.pod.spec import PodSpec
from model.reason import Reason

_NOTHING = PodSpec()
_UNUSED = {
    name: getattr(_NOTHING, name)
    for name in ("node_selector", "tolerations", "affinity", "spread", "claims", "host_ports", "gang")
}
"""As long as their author likes, while the agent's memory is small; placement and gangs are the scheduler's."""
_RULES = frozenset(reason.value for reason in Reason)


class InternalError(ConfigurationFault):
    """The pod may be as it should: its cause is a defect of the agent, whose traceback belongs in the log."""


def read_pod(source: objects.Pod) -> Pod:
    """The pod. Raises ConfigurationFault, whatever it is that keeps it from being read.

    One pod must not end the agent, and with it the care for all.
    """
    try:
        return _needed(core_objects.pod(source))
    except ConfigurationFault:
        raise
    except Exception as error:
        where = f"Pod {source.metadata.namespace}/{source.metadata.name}"
        what = f"cannot be read by an error of the agent: {type(error).__name__}"
        raise InternalError(where, what, "report it") from error


def _needed(pod: Pod) -> Pod:
    """Without what no agent asks for; of the rules that it names, those that there are."""
    spec, colocation, terms = msgspec.structs.replace(pod.spec, **_UNUSED), pod.colocation, pod.colocation.eviction
    if terms.features is not None:
        known = msgspec.structs.replace(terms, features=terms.features & _RULES)
        colocation = msgspec.structs.replace(colocation, eviction=known)
    return msgspec.structs.replace(pod, spec=spec, colocation=colocation, labels={})
