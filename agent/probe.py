"""Probe of the agent in this container, alive or ready: `sublet-probe SOCKET healthz`, exit code 0 if it is.

A kubelet's probe is a process of its own, several times a minute on every node: nothing is loaded that the interpreter
does not have built in (7 ms of CPU; the `socket` module would double that). In the image it is /usr/bin/sublet-probe.
"""

import sys
from _socket import AF_UNIX, SOCK_STREAM, socket

_MOST_BYTES = 4096


def main(argv: list[str], patience_seconds: float = 4.0) -> int:
    """`argv` is the socket's path and the page. What is said there is printed, for the kubelet's Event."""
    try:
        path, page = argv
        status, said = _asked(path, page, patience_seconds)
    except ValueError:
        status, said = "", "usage: sublet-probe SOCKET healthz|readyz"
    except OSError as error:
        status, said = "", f"the agent does not answer: {error.strerror or error}"
    print(said)
    return 0 if status == "200" else 1


def _asked(path: str, page: str, patience_seconds: float) -> tuple[str, str]:
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(patience_seconds)
    connection.connect(path)
    connection.send(f"GET /{page} HTTP/1.0\r\n\r\n".encode())
    answer = b""
    while len(answer) < _MOST_BYTES and (more := connection.recv(_MOST_BYTES)):
        answer += more
    head, _, said = answer.decode(errors="replace").partition("\r\n\r\n")
    return head[len("HTTP/1.0 ") :][:3], said.strip() or "the agent ended the connection"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
