"""Services and EndpointSlices as the proxy reads them; absent and null are the same."""

from __future__ import annotations

import msgspec


class _Camel(msgspec.Struct, frozen=True, rename="camel"): ...


class Metadata(_Camel, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class ServicePort(_Camel, frozen=True):
    port: int
    name: str = ""
    protocol: str = "TCP"


class ServiceSpec(_Camel, frozen=True):
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    ports: list[ServicePort] | None = None


class ServiceObject(_Camel, frozen=True):
    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class Conditions(_Camel, frozen=True):
    """Unknown readiness counts as ready, as the API has it."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(_Camel, frozen=True):
    addresses: list[str]
    conditions: Conditions = Conditions()

    @property
    def ready(self) -> bool:
        return self.conditions.ready is not False

    @property
    def still_serves(self) -> bool:
        """Whether it is terminating and can answer until then."""
        return bool(self.conditions.terminating and self.conditions.serving)


class EndpointPort(_Camel, frozen=True):
    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSliceObject(_Camel, frozen=True):
    metadata: Metadata
    address_type: str = "IPv4"
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None
