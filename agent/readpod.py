"""One pod as the agent reads it: an error of ours ends nothing."""

from __future__ import annotations

from kube import objects
from kube.dialects import upstream
from model.fault import ConfigurationFault
from model.pod import Pod


class ErrorOfOurs(ConfigurationFault):
    """The pod may be as it should: its cause is a defect of the agent, whose traceback belongs in the log."""


def read_pod(source: objects.Pod) -> Pod:
    """The pod. Raises ConfigurationFault, whatever it is that keeps it from being read.

    One pod must not end the agent, and with it the care for all.
    """
    try:
        return upstream.pod(source)
    except ConfigurationFault:
        raise
    except Exception as error:
        where = f"Pod {source.metadata.namespace}/{source.metadata.name}"
        what = f"cannot be read by an error of the agent: {type(error).__name__}"
        raise ErrorOfOurs(where, what, "report it") from error
