"""The leader's work, turn by turn, against an API server that keeps versions; and clients across a rotation."""

from __future__ import annotations

import asyncio
import ssl
import sys
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_api import HOOKS, FakeApi

from admission.core.certificates import CertificatePolicy
from admission.edge.certificates import CertificateKeeper, service_hosts
from admission.edge.memoryfiles import MemoryFiles
from admission.edge.server import ReviewServer
from admission.edge.servingpair import ServingPair
from admission.ports import Reply, WebhookLimits
from kube.client import KubeClient
from kube.tls import ServerCertificate
from kube.x509 import Authority, KeyPair, described
from model.fault import KubernetesFault

NS = "/api/v1/namespaces/sublet-system/"
CA, BUNDLE, LEAF = f"{NS}secrets/sublet-ca", f"{NS}configmaps/sublet-ca", f"{NS}secrets/sublet-admission-tls"
MUTATING, VALIDATING = (f"{HOOKS}{kind}webhookconfigurations/sublet-admission" for kind in ("mutating", "validating"))
POLICY = CertificatePolicy(authority_days=90, server_days=30, settle_seconds=3600)
DAY, HOUR = 86_400.0, 3600.0
START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


class Meter:
    def __init__(self) -> None:
        self.written: list[str] = []

    def wrote(self, name: str) -> None:
        self.written.append(name)


class World:
    """A cluster and its keeper; `turn` looks after the certificates at a time."""

    def __init__(self, api: FakeApi, client: KubeClient) -> None:
        self.api = api
        self.client = client
        self.meter = Meter()
        self.keeper = CertificateKeeper(client, "sublet-system", ("sublet-admission", "sublet-agent"), POLICY)

    async def turn(self, now: float) -> list[str]:
        """What was written."""
        self.api.writes.clear()
        await self.keeper.turn(now, self.meter)
        return [write.rpartition("/")[2] for write in self.api.writes]

    def leaf(self, path: str = LEAF) -> KeyPair:
        return KeyPair(*(b64decode(self.api.objects[path]["data"][key]) for key in ("tls.crt", "tls.key")))

    @property
    def bundle(self) -> str:
        return str(self.api.objects[BUNDLE]["data"]["ca.crt"])


def play(folder: Path, scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        api = FakeApi(folder)
        async with asyncio.timeout(60), api as client:
            await scene(World(api, client))

    asyncio.run(run())


def hooks(*bundles: str | None) -> dict[str, Any]:
    configs = [{"service": {}} if each is None else {"service": {}, "caBundle": each} for each in bundles]
    return {"webhooks": [{"name": f"h{n}", "clientConfig": config} for n, config in enumerate(configs)]}


def test_the_first_turn_makes_everything(tmp_path: Path) -> None:
    """Authority, bundle, certificates for each service's names, and trust at the API server; then nothing."""

    async def scene(world: World) -> None:
        world.api.put(MUTATING, hooks(None, "b2xk"))
        names = ["sublet-ca", "sublet-ca", "sublet-admission", "sublet-admission-tls", "sublet-agent-tls"]
        assert await world.turn(START) == names
        assert await world.turn(START + 60) == []
        found = described(world.leaf())
        assert found.names == service_hosts("sublet-admission", "sublet-system")
        assert found.names[2:] == (
            "sublet-admission.sublet-system.svc",
            "sublet-admission.sublet-system.svc.cluster.local",
        )
        assert world.api.objects[LEAF]["type"] == "kubernetes.io/tls"
        trusted = [hook["clientConfig"] for hook in world.api.objects[MUTATING]["webhooks"]]
        assert trusted == [{"service": {}, "caBundle": b64encode(world.bundle.encode()).decode()}] * 2

    play(tmp_path, scene)


def test_a_rotation_takes_three_steps(tmp_path: Path) -> None:
    """Publish the next, sign with it, drop the one before; everybody has an hour in between."""

    async def scene(world: World) -> None:
        await world.turn(START)
        old = world.bundle
        due = START + 60 * DAY
        await world.turn(due)
        assert world.bundle.startswith(old) and world.bundle.count("BEGIN") == 2
        assert described(world.leaf()).signer_id == described(authority(world, "ca")).key_id
        new = world.bundle.removeprefix(old)
        assert await world.turn(due + HOUR - 60) == []
        await world.turn(due + HOUR)
        assert world.bundle == new + old
        assert described(world.leaf()).signer_id == described(authority(world, "ca")).key_id
        assert "next.key" not in world.api.objects[CA]["data"]
        await world.turn(due + 2 * HOUR)
        assert world.bundle == new and set(world.api.objects[CA]["data"]) == {"ca.crt", "ca.key"}

    play(tmp_path, scene)


def authority(world: World, name: str) -> KeyPair:
    data = world.api.objects[CA]["data"]
    return KeyPair(b64decode(data[f"{name}.crt"]), b64decode(data[f"{name}.key"]))


def test_certificates_are_renewed_in_time(tmp_path: Path) -> None:
    """After two thirds of their life, by the same authority."""

    async def scene(world: World) -> None:
        await world.turn(START)
        before = world.leaf()
        assert await world.turn(START + 19 * DAY) == []
        assert await world.turn(START + 20 * DAY) == ["sublet-admission-tls", "sublet-agent-tls"]
        assert world.leaf() != before and described(world.leaf()).signer_id == described(before).signer_id

    play(tmp_path, scene)


async def damage_leaf(world: World) -> None:
    world.api.objects[LEAF]["data"]["tls.key"] = b64encode(b"rubbish").decode()


async def damage_base64(world: World) -> None:
    world.api.objects[LEAF]["data"]["tls.crt"] = "!"


async def mix_pairs(world: World) -> None:
    world.api.objects[LEAF]["data"]["tls.key"] = world.api.objects[f"{NS}secrets/sublet-agent-tls"]["data"]["tls.key"]


async def delete_leaf(world: World) -> None:
    del world.api.objects[LEAF]


async def sign_elsewhere(world: World) -> None:
    at = datetime.fromtimestamp(START, UTC)
    other = Authority.create("other", at, timedelta(days=9)).issue("x", ("x",), at, timedelta(days=9))
    world.api.objects[LEAF]["data"] = {
        "tls.crt": b64encode(other.certificate).decode(),
        "tls.key": b64encode(other.key).decode(),
    }


@pytest.mark.parametrize("harm", [damage_leaf, damage_base64, mix_pairs, delete_leaf, sign_elsewhere])
def test_a_certificate_that_somebody_harmed_is_made_again(
    tmp_path: Path, harm: Callable[[World], Awaitable[None]]
) -> None:
    """And only that one."""

    async def scene(world: World) -> None:
        await world.turn(START)
        world.api.objects[LEAF]["metadata"]["labels"] = {"kept": "yes"}
        await harm(world)
        assert await world.turn(START + 60) == ["sublet-admission-tls"]
        assert described(world.leaf()).signer_id == described(authority(world, "ca")).key_id
        assert await world.turn(START + 120) == []

    play(tmp_path, scene)


@pytest.mark.parametrize("harm", ["deleted", "damaged"])
def test_a_lost_authority_is_replaced_while_its_certificates_stay_trusted(tmp_path: Path, harm: str) -> None:
    """Pods that still show what it signed are believed until they show the new one."""

    async def scene(world: World) -> None:
        await world.turn(START)
        old, leaf = world.bundle, world.leaf()
        if harm == "deleted":
            del world.api.objects[CA]
        else:
            world.api.objects[CA]["data"]["ca.key"] = b64encode(leaf.key).decode()
        await world.turn(START + DAY)
        assert world.bundle.endswith(old) and world.bundle.count("BEGIN") == 2
        assert world.leaf() != leaf
        await world.turn(START + DAY + HOUR)
        assert old not in world.bundle

    play(tmp_path, scene)


def test_what_others_write_over_is_written_again(tmp_path: Path) -> None:
    """The bundle, and the authorities that the API server trusts; other fields are theirs."""

    async def scene(world: World) -> None:
        world.api.put(VALIDATING, hooks(None))
        await world.turn(START)
        good = world.bundle
        world.api.objects[BUNDLE]["data"] = {"ca.crt": "mine now"}
        world.api.put(VALIDATING, hooks("bWluZQ==", None))
        assert await world.turn(START + 60) == ["sublet-ca", "sublet-admission"]
        assert world.bundle == good
        assert all(hook["clientConfig"]["caBundle"] for hook in world.api.objects[VALIDATING]["webhooks"])
        assert set(world.meter.written) == {
            *("sublet-ca", "bundle", "sublet-admission-tls", "sublet-agent-tls", "validatingwebhookconfigurations")
        }

    play(tmp_path, scene)


def test_a_wait_starts_again_where_the_bundle_was_not_told(tmp_path: Path) -> None:
    """A next authority that nobody could read about for an hour does not sign yet."""

    async def scene(world: World) -> None:
        await world.turn(START)
        due = START + 60 * DAY
        world.api.refuse[BUNDLE] = 500
        with pytest.raises(KubernetesFault):
            await world.turn(due)
        await world.turn(due + HOUR)
        assert world.bundle.count("BEGIN") == 2 and "next.key" in world.api.objects[CA]["data"]
        await world.turn(due + 2 * HOUR - 60)
        assert "next.key" in world.api.objects[CA]["data"]
        await world.turn(due + 2 * HOUR)
        assert "next.key" not in world.api.objects[CA]["data"]

    play(tmp_path, scene)


def test_clocks_that_jump(tmp_path: Path) -> None:
    """Far ahead: all expired, all made again. Back again: made once more, since the future is not valid yet."""

    async def scene(world: World) -> None:
        await world.turn(START)
        await world.turn(START + 1000 * DAY)
        assert described(world.leaf()).not_before > START + 999 * DAY
        await world.turn(START)
        assert described(world.leaf()).not_before < START
        assert await world.turn(START + 60) == []

    play(tmp_path, scene)


def test_two_who_believe_to_lead(tmp_path: Path) -> None:
    """The second's write is about a version that is not there any more: 409, and its next turn sees the first's."""

    async def scene(world: World) -> None:
        world.api.refuse[CA] = 409
        with pytest.raises(KubernetesFault) as refused:
            await world.turn(START)
        assert refused.value.status == 409 and BUNDLE not in world.api.objects
        await world.turn(START)
        before = dict(world.api.objects[CA]["data"])
        other = CertificateKeeper(world.client, "sublet-system", ("sublet-admission", "sublet-agent"), POLICY)
        await other.turn(START, world.meter)
        assert world.api.objects[CA]["data"] == before

    play(tmp_path, scene)


def test_clients_are_served_without_a_break_across_a_rotation(tmp_path: Path) -> None:
    """Real handshakes: a client with the newest bundle, and one that is a step behind, both believe the server."""

    async def echo(path: str, body: bytes) -> Reply:
        return Reply(200, body)

    async def scene(world: World) -> None:
        start = datetime.now(UTC).timestamp() - 60 * DAY - 3 * HOUR
        await world.turn(start)
        # Renewed on the way, so that it is valid at the time of the handshakes.
        for day in (20, 40, 59):
            await world.turn(start + day * DAY)
        source = ServingPair(world.client, "sublet-system", "sublet-admission-tls", 0.01)
        memory = MemoryFiles(await source.first())
        server = ReviewServer("127.0.0.1:0", ServerCertificate(memory.files), echo, WebhookLimits())
        signers, behind = [], world.bundle
        async with server:
            for hours in (0, 1, 2):
                await world.turn(start + 60 * DAY + hours * HOUR)
                if world.leaf() != source._pair:
                    memory.replace(await source.newer())
                signers.append({await shake(server.address, trust) for trust in (behind, world.bundle)})
                behind = world.bundle
        assert [len(names) for names in signers] == [1, 1, 1]
        assert signers[0] != signers[1] == signers[2]

    async def shake(address: str, trust: str) -> str:
        """Who signed what is shown; fails where it is not believed."""
        host, port = address.split(":")
        context = ssl.create_default_context(cadata=trust)
        _, writer = await asyncio.open_connection(
            host, int(port), ssl=context, server_hostname="sublet-admission.sublet-system.svc"
        )
        issuer = str(writer.get_extra_info("peercert")["issuer"])
        writer.close()
        return issuer

    play(tmp_path, scene)


def test_a_damaged_secret_leaves_the_last_certificate_in_use(tmp_path: Path) -> None:
    """A follower waits for one that can be served."""

    async def scene(world: World) -> None:
        source = ServingPair(world.client, "sublet-system", "sublet-admission-tls", 0.01)
        first = asyncio.create_task(source.first())
        await world.turn(START)
        assert await first == world.leaf()
        waiting = asyncio.create_task(source.newer())
        await damage_leaf(world)
        await asyncio.wait([waiting], timeout=0.1)
        assert not waiting.done()
        await world.turn(START + 60)
        assert await waiting == world.leaf()

    play(tmp_path, scene)
