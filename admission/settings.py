"""Settings of the admission program, from a YAML or JSON file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from admission.core.certificates import CertificatePolicy
from admission.core.mutate import MutationPolicy
from admission.core.validate import PodRules
from admission.ports import Limits
from model.fault import ConfigurationFault


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one replica does."""

    mutation: MutationPolicy = MutationPolicy()
    pods: PodRules = PodRules()
    certificates: CertificatePolicy = CertificatePolicy()
    limits: Limits = Limits()


def load(path: Path | None) -> Settings:
    """Read a settings file; None, or one that says nothing, gives the defaults.

    Raises ConfigurationFault naming the file and the field.
    """
    if path is None:
        return Settings()
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=Settings | None) or Settings()
    except OSError as error:
        raise ConfigurationFault(str(path), f"cannot be read: {error.strerror}", "give --settings FILE") from error
    except (msgspec.MsgspecError, LookupError, ValueError, RecursionError) as error:
        raise ConfigurationFault(str(path), str(error), "docs/settings.md lists the fields") from error
