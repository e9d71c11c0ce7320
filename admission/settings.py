"""Settings of the admission program, from a YAML or JSON file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from admission.core.certificates import CertificatePolicy
from admission.core.mutate import MutationPolicy
from admission.core.validate import PodRules
from admission.ports import WebhookLimits
from kube.settingsfile import read_settings


class AdmissionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one replica does."""

    mutation: MutationPolicy = MutationPolicy()
    pods: PodRules = PodRules()
    certificates: CertificatePolicy = CertificatePolicy()
    limits: WebhookLimits = WebhookLimits()


def load(path: Path | None) -> AdmissionSettings:
    """The defaults where there is no file. Raises ConfigurationFault."""
    return read_settings(path, AdmissionSettings)
