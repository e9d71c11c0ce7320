"""State that survives the process: acknowledged writes, revisions, and disks that are full or foreign."""

import asyncio
import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embedded
from embedded.apiserver.apimachinery.selectors import EVERYTHING
from embedded.apiserver.bootstrap import apply_manifests, create_system_objects, restore
from embedded.apiserver.http.router import Router
from embedded.apiserver.request.attributes import AllowAll
from embedded.apiserver.request.messages import Request
from embedded.apiserver.storage.journal import Journal
from embedded.apiserver.storage.state_directory import FORMAT, StateDirectory, StateError

MAPS = "/api/v1/namespaces/default/configmaps"
ROOM = 1 << 16
NOON = 1_790_000_000.0


class Run:
    """One life of a server on a state directory, without sockets."""

    def __init__(self, directory, clock, journal_directory=None):
        self.directory = StateDirectory(directory, ROOM)
        self.journal = Journal(journal_directory(self.directory) if journal_directory else self.directory, 0.0)
        self.core = Router(clock, log=self.journal, authorizer=AllowAll())
        restore(self.core.resources, self.directory)
        create_system_objects(self.core.resources)

    async def send(self, method, path, body=None):
        content = {"content-type": "application/merge-patch+json"} if method == "PATCH" else {}
        data = b"" if body is None else json.dumps(body).encode()
        answer = await self.core.handle(Request(method, path, {}, content, data))
        return answer.status, json.loads(answer.body)

    async def put(self, name, value):
        body = {"metadata": {"name": name}, "data": {"v": str(value)}}
        code, answer = await self.send("POST", MAPS, body)
        return (
            (code, answer) if code != 409 else await self.send("PATCH", f"{MAPS}/{name}", {"data": {"v": str(value)}})
        )

    def state(self):
        return {
            (type_id, *record.key): record.body
            for type_id, shelf in self.core.store._shelves.items()
            for record in shelf.select(EVERYTHING)
        }

    def values(self):
        maps = self.core.store.select("configmaps", EVERYTHING)
        return {record.name: json.loads(record.body)["data"]["v"] for record in maps}


def live(directory, clock, act, **more):
    """Run one life to an orderly end; what `act` returns."""

    async def run():
        it = Run(directory, clock, **more)
        try:
            return await act(it)
        finally:
            await it.core.close()
            await it.journal.close()

    return asyncio.run(run())


async def just_state(run):
    return run.state()


OPERATIONS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "delete"])), max_size=30)


@settings(max_examples=25)
@given(operations=OPERATIONS)
def test_what_is_loaded_is_what_was_there(tmp_path_factory, operations):
    """Objects come back byte by byte, whatever was created, changed and deleted, in whatever order."""
    directory, clock = tmp_path_factory.mktemp("state"), lambda: NOON

    async def act(run):
        for number, (name, what) in enumerate(operations):
            await (run.put(name, number) if what == "put" else run.send("DELETE", f"{MAPS}/{name}"))
        return run.state()

    before = live(directory, clock, act)
    assert live(directory, clock, just_state) == before


def test_revisions_never_go_back(tmp_path, clock):
    """Also when the clock is set back by a day; a client of the earlier run is told to start over."""

    async def act(run):
        _, made = await run.put("a", run.core.store.revision)
        return int(made["metadata"]["resourceVersion"])

    first = live(tmp_path, clock, act)
    clock.advance(-86_400)

    async def watch_from_before(run):
        query = {"watch": "1", "resourceVersion": str(first)}
        stream = await run.core.handle(Request("GET", MAPS, query))
        return json.loads(await anext(stream.chunks)), await act(run)

    event, second = live(tmp_path, clock, watch_from_before)
    assert second > first
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_definitions_and_their_objects_come_back(tmp_path, clock):
    """A custom object is served again after a restart, as its definition is loaded first."""
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": "x.example", "scope": "Cluster", "names": names, "versions": [version]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.example"},
        "spec": spec,
    }
    thing = {"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "one"}}

    async def define(run):
        code, answer = await run.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert code == 201, answer
        return await run.send("POST", "/apis/x.example/v1/things", thing)

    code, made = live(tmp_path, clock, define)
    assert code == 201, made
    code, found = live(tmp_path, clock, lambda run: run.send("GET", "/apis/x.example/v1/things/one"))
    assert (code, found) == (200, made)

    async def serve(run, served):
        changed = {"spec": {"versions": [version | {"served": served}]}}
        url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.x.example"
        assert (await run.send("PATCH", url, changed))[0] == 200
        return await run.send("GET", "/apis/x.example/v1/things/one")

    assert live(tmp_path, clock, lambda run: serve(run, False))[0] == 404
    assert live(tmp_path, clock, lambda run: serve(run, True)) == (200, made)


def test_manifests_of_a_later_start_renew_what_they_made(tmp_path, clock):
    """A definition that a newer version ships takes effect; what others added to the object stays."""
    manifest = tmp_path / "pc.yaml"
    text = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: c, labels: {a: '%s'}}\nvalue: 5\n"
    url = "/apis/scheduling.k8s.io/v1/priorityclasses/c"

    async def start(run, label):
        manifest.write_text(text % label)
        apply_manifests(run.core.resources, [manifest])
        await run.send("PATCH", url, {"metadata": {"labels": {"mine": "yes"}}})
        return (await run.send("GET", url))[1]["metadata"]

    first = live(tmp_path / "state", clock, lambda run: start(run, "1"))
    second = live(tmp_path / "state", clock, lambda run: start(run, "2"))
    assert (second["labels"], second["uid"]) == ({"a": "2", "mine": "yes"}, first["uid"])


def test_what_people_change_stays_as_they_made_it(tmp_path, clock):
    """A manifest that is made once: a second life of the server neither renews it nor minds that it is there."""
    manifest = tmp_path / "settings.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {k: shipped}\n")

    async def start(run, change):
        apply_manifests(run.core.resources, [manifest], renew=False)
        if change:
            await run.send("PATCH", f"{MAPS}/settings", {"data": {"k": change}})
        return (await run.send("GET", f"{MAPS}/settings"))[1]["data"]

    assert live(tmp_path / "state", clock, lambda run: start(run, "")) == {"k": "shipped"}
    live(tmp_path / "state", clock, lambda run: start(run, "mine"))
    assert live(tmp_path / "state", clock, lambda run: start(run, "")) == {"k": "mine"}


CHILD = """
import asyncio, sys, time
from pathlib import Path
from embedded.tests.apiserver.storage.test_journal import Run

async def writer(run, name):
    for number in range(100_000):
        if number % 7 == 6:
            code, _ = await run.send("DELETE", f"/api/v1/namespaces/default/configmaps/{name}")
        else:
            code, _ = await run.put(name, number)
        assert code in (200, 201), code
        sys.stdout.write(f"{name} {number}\\n")
        sys.stdout.flush()

async def main():
    run = Run(Path(sys.argv[1]), time.time)
    await asyncio.gather(*(writer(run, f"w{n}") for n in range(4)))

asyncio.run(main())
"""


def acknowledged(directory, lines):
    """Let a process write until it has acknowledged so many lines, kill it, and return what each writer was told."""
    environment = {**os.environ, "PYTHONPATH": str(Path(embedded.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(directory)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    told = {}
    for number, line in enumerate(process.stdout):
        name, value = line.split()
        told[name] = int(value)
        if number == lines:
            process.send_signal(signal.SIGKILL)  # what it wrote before it died is still read to the end
    assert process.wait(10) == -signal.SIGKILL
    return told


def possible(number):
    """What a writer's map may hold: after the last acknowledged step, or after the one that was on its way."""
    return {None if step % 7 == 6 else str(step) for step in (number, number + 1)}


@pytest.mark.parametrize("lines", [3, 50, 181, 400])
def test_a_killed_server_keeps_what_it_acknowledged(tmp_path, clock, lines):
    """kill -9 during writes loses nothing that a client was told, and leaves nothing half done."""
    told = acknowledged(tmp_path, lines)

    async def values(run):
        return run.values()

    found = live(tmp_path, clock, values)
    for name in ("w0", "w1", "w2", "w3"):
        assert found.get(name) in possible(told.get(name, -1)) | ({None} if name not in told else set()), (name, told)


def test_a_file_is_no_state_directory(tmp_path):
    """In words, not as a number of the kernel's."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StateError, match=f"^--state-dir {file}: is not a directory$"):
        StateDirectory(file, ROOM)


def test_one_directory_serves_one_server(tmp_path):
    """The second one says who has it."""
    first = StateDirectory(tmp_path, ROOM)
    with pytest.raises(StateError, match=f"in use by process {os.getpid()}"):
        StateDirectory(tmp_path, ROOM)
    first.close()
    StateDirectory(tmp_path, ROOM).close()


def foreign(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE other (x)")
    database.close()


def later_format(path):
    StateDirectory(path.parent, ROOM).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.close()


def damaged(path):
    StateDirectory(path.parent, ROOM).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))


BAD_FILES = {
    "not a database": (lambda path: path.write_bytes(b"x" * 5000), "not a database"),
    "another program's": (foreign, "of another program"),
    "a later format": (later_format, f"has format {FORMAT + 1}; this program reads {FORMAT}"),
    "damaged": (damaged, "damaged|malformed"),
}


@pytest.mark.parametrize(("make", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_is_not_our_state_is_one_clear_error(tmp_path, make, message):
    """It is neither used nor changed, and the directory is not left locked."""
    make(tmp_path / "state.sqlite")
    for _ in range(2):
        with pytest.raises(StateError, match=message):
            StateDirectory(tmp_path, ROOM)


FILES_OF_A_STATE = ("lock", "state.sqlite", "state.sqlite-wal", "state.sqlite-shm", "state.sqlite-journal")


@pytest.mark.parametrize("name", FILES_OF_A_STATE)
def test_a_link_among_the_files_of_the_state_is_refused(tmp_path, name):
    """Whoever could write to the directory may have left it: what it leads to stays as it is, and nothing is made."""
    precious, state = tmp_path / "precious", tmp_path / "state"
    precious.write_text("precious")
    StateDirectory(state, ROOM).close()
    (state / name).unlink(missing_ok=True)
    for target in (precious, tmp_path / "absent"):
        (state / name).symlink_to(target)
        with pytest.raises(StateError, match=f"--state-dir {state}/{name}: a link .* not followed"):
            StateDirectory(state, ROOM)
        (state / name).unlink()
    assert precious.read_text() == "precious"
    assert not (tmp_path / "absent").exists()
    StateDirectory(state, ROOM).close()  # not left locked


def test_a_link_in_place_of_the_room_is_replaced(tmp_path):
    """The room kept back for a full disk is a file of the directory's own."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "room-for-a-full-disk").symlink_to(precious)
    StateDirectory(tmp_path, ROOM).close()
    assert precious.read_text() == "precious"


def test_a_directory_that_others_may_write_to_is_closed_or_refused(tmp_path):
    """As with `--dir`: one with other things in it is not the server's to close."""
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    StateDirectory(state, ROOM).close()
    assert state.stat().st_mode & 0o777 == 0o700
    state.chmod(0o1777)
    (state / "something").write_text("")
    with pytest.raises(StateError, match="others may write to it"):
        StateDirectory(state, ROOM)
    assert state.stat().st_mode & 0o777 == 0o777


def test_a_link_to_a_state_directory_is_refused(tmp_path):
    """Its owner could point it elsewhere."""
    (tmp_path / "state").mkdir()
    (tmp_path / "link").symlink_to("state")
    with pytest.raises(StateError, match="a symbolic link, or another user's"):
        StateDirectory(tmp_path / "link", ROOM)
    assert list((tmp_path / "state").iterdir()) == []


def test_only_the_owner_may_read_the_state(tmp_path):
    """Secrets lie in it."""
    StateDirectory(tmp_path / "new", ROOM).close()
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "state.sqlite").stat().st_mode & 0o777 == 0o600


class FillingDisk:
    """A state directory whose disk is full when told so; the room kept back is enough for one commit."""

    def __init__(self, directory):
        self.real = directory
        self.full = False
        self.room = True

    @property
    def reserved(self):
        return self.real.reserved

    def reserve(self, revision):
        self.real.reserve(revision)

    def commit(self, changes, reserved):
        if self.full and self.room:
            raise sqlite3.OperationalError("database or disk is full")
        self.real.commit(changes, reserved)

    def keep_room(self):
        if self.full:
            raise OSError("no space left")
        self.room = True

    def give_room(self):
        self.room = False

    def close(self):
        self.real.close()


def test_a_full_disk_refuses_writes_whole(tmp_path, clock):
    """What was accepted is finished, what comes later is refused and changes nothing, until there is space again."""

    async def act(run):
        disk = run.journal._directory
        assert (await run.put("a", 1))[0] == 201
        disk.full = True
        assert (await run.put("b", 1))[0] == 201
        before = run.state()
        code, refused = await run.put("c", 1)
        assert (code, refused["kind"], refused["reason"]) == (500, "Status", "InternalError"), refused
        assert "no space left" in refused["message"] or "full" in refused["message"]
        assert run.state() == before
        assert (await run.send("GET", f"{MAPS}/b"))[0] == 200
        disk.full = False
        for _ in range(1000):
            code, _ = await run.put("c", 2)
            if code == 201:
                return run.state()
            await asyncio.sleep(0)
        raise AssertionError("writes are never accepted again")

    left = live(tmp_path, clock, act, journal_directory=FillingDisk)
    assert live(tmp_path, clock, just_state) == left


class ReadOnlyDisk(FillingDisk):
    """One whose file system is read-only when told so: not even room can be given."""

    def commit(self, changes, reserved):
        if self.full:
            raise sqlite3.OperationalError("attempt to write a readonly database")
        self.real.commit(changes, reserved)

    def give_room(self):
        if self.full:
            raise OSError(errno.EROFS, "Read-only file system")


def test_a_disk_that_becomes_read_only_answers_every_writer(tmp_path, clock):
    """Nobody waits for ever: the write on its way is told, later ones are refused, and all is well when it is over."""

    async def act(run):
        disk = run.journal._directory
        disk.full = True
        async with asyncio.timeout(10):
            assert (await run.put("a", 1))[0] == 500
            assert (await run.put("b", 1))[0] == 500
            disk.full = False
            while (await run.put("b", 2))[0] != 201:
                await asyncio.sleep(0)
        return run.values()

    assert live(tmp_path, clock, act, journal_directory=ReadOnlyDisk) == {"a": "1", "b": "2"}


def test_room_that_cannot_be_given_back_keeps_no_directory_locked(tmp_path):
    """The end is orderly on a file system that is read-only by now; the next run finds the directory free."""
    directory = StateDirectory(tmp_path, ROOM)
    room = tmp_path / "room-for-a-full-disk"
    room.unlink()
    room.mkdir()  # what cannot be removed as a file, for root neither
    directory.close()
    room.rmdir()
    StateDirectory(tmp_path, ROOM).close()
