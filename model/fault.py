"""Errors, sorted by whose fault they are.

    Fault
    ├── ConfigurationFault   a document, flag or setting is wrong: the operator mends it
    │   └── CannotListen     the machine refuses an address at this moment
    ├── KernelFault          a kernel file is missing, unreadable or says something impossible
    ├── KubernetesFault      the API server refused or could not be reached
    └── PeerFault            the other Sublet program refused or could not be reached

Everything else that escapes is a bug of ours. A fault names the object, the field and the fix, so that
one line is enough for the person who reads it.
"""

from __future__ import annotations

from collections.abc import Iterator


class Fault(Exception):
    """A failure with an owner: `where` is the file or object, `what` is wrong, `fix` says what to do."""

    def __init__(self, where: str, what: str, fix: str = "") -> None:
        self.where = where
        self.what = what
        self.fix = fix
        text = f"{where}: {what}" + (f" ({fix})" if fix else "")
        super().__init__(" ".join(text.split()))


class ConfigurationFault(Fault):
    """A document, flag or setting is wrong."""


class CannotListen(ConfigurationFault):
    """The machine refuses an address at this moment: somebody else may listen there."""


class KernelFault(Fault):
    """A kernel file is missing, unreadable or holds something impossible."""


TOO_LONG = "AnswerTooLong"
"""The reason of a KubernetesFault: the answer had more bytes than it might."""


class KubernetesFault(Fault):
    """The API server refused a request or could not be reached; `status` is the HTTP code, 0 for no answer.

    `retry_after_seconds` is how long it asked to wait, 0 where it did not.
    """

    def __init__(
        self,
        where: str,
        what: str,
        fix: str = "",
        *,
        status: int = 0,
        reason: str = "",
        retry_after_seconds: float = 0.0,
    ) -> None:
        self.status = status
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds
        super().__init__(where, what, fix)


class PeerFault(Fault):
    """The other Sublet program refused a request or could not be reached."""


def fault_in(group: BaseExceptionGroup[BaseException]) -> Fault | None:
    """The first fault of tasks that failed together; None where any of them failed by a bug of ours."""
    _, rest = group.split(Fault)
    return None if rest is not None else next(_faults(group))


def _faults(error: BaseException) -> Iterator[Fault]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _faults(inner)
    elif isinstance(error, Fault):
        yield error
