"""Small programs that stand in for the cluster's own, and a directory to run them in."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

# Writes its ready file, notes each start and its end in `journal`, and serves until SIGTERM.
_PROGRAM = """
import json, os, signal, sys, time
name, ready, journal, seconds = sys.argv[1:5]
def note(text):
    with open(journal, "a") as file:
        file.write(f"{name} {text}\\n")
def end(*_):
    note("stopped")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
note("started " + " ".join(sys.argv[5:]))
with open(ready + ".new", "w") as file:
    json.dump({"port": 1, "pid": os.getpid()}, file)
os.replace(ready + ".new", ready)
time.sleep(float(seconds))
print("error: the dummy had enough", file=sys.stderr)
sys.exit(7)
"""

# Serves HTTP, and says which port in its ready file.
_SERVER = """
import http.server, json, os, signal, sys
ready = sys.argv[1]
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with open(ready + ".new", "w") as file:
    json.dump({"port": server.server_address[1]}, file)
os.replace(ready + ".new", ready)
server.serve_forever()
"""


def answering(ready: Path) -> list[str]:
    """The command line of a program that answers every GET."""
    return [sys.executable, "-c", _SERVER, str(ready)]


def dummy(name: str, ready: Path, journal: Path, *extra: str, seconds: float = 60.0) -> list[str]:
    """The command line of a program that crashes after `seconds`."""
    return [sys.executable, "-c", _PROGRAM, name, str(ready), str(journal), str(seconds), *extra]


def until(condition: Callable[[], bool], bound_seconds: float = 10.0) -> bool:
    """Whether `condition` comes true within the bound."""
    deadline = time.monotonic() + bound_seconds
    while not (true := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return true


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def lines_of(path: Path) -> list[str]:
    """The lines of a file that may not exist yet."""
    return path.read_text().splitlines() if path.exists() else []


def kill(pid: int, number: int) -> None:
    os.kill(pid, number)
