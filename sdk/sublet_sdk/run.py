"""`python -m sublet_sdk.run COMMAND…`: runs a command, and sends it SIGTERM when a notice comes.

For programs that save on SIGTERM and know nothing of notices, such as torchrun's. What else this process is sent is
passed on; it ends as the command does.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from sublet_sdk.notice import NoticeSource, SignalNotice, sources_here

_LOOK_SECONDS = 0.2
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run(command: Sequence[str], notices: Sequence[NoticeSource]) -> int:
    """The command's exit status, 128 and the signal's number where one ended it."""
    with subprocess.Popen(command) as process:

        def pass_on(number: int, frame: FrameType | None) -> None:
            process.send_signal(number)

        before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
        try:
            status = _watched(process, notices)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return 128 - status if status < 0 else status


def _watched(process: subprocess.Popen[bytes], notices: Sequence[NoticeSource]) -> int:
    """Each notice is told once: it may be taken back, and another may come."""
    told = False
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_LOOK_SECONDS)
        reason = next((said for each in notices if (said := each.noticed())), "")
        if reason and not told:
            print(f"sublet_sdk.run: SIGTERM to {process.args!r}: {reason}", file=sys.stderr, flush=True)
            process.terminate()
        told = bool(reason)


def main(command: Sequence[str]) -> int:
    """The program."""
    if not command:
        print("usage: python -m sublet_sdk.run COMMAND…", file=sys.stderr)
        return 2
    notices = sources_here()
    try:
        # A signal is passed on as it is.
        return run(command, [each for each in notices if not isinstance(each, SignalNotice)])
    except OSError as error:
        print(f"error: {command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 127
    finally:
        for each in notices:
            each.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
