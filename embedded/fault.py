"""Errors, sorted by whose fault they are.

    Fault
    ├── ConfigurationFault   a file, flag or setting is wrong: the operator mends it
    ├── KernelFault          a kernel file is missing, unreadable or says something impossible
    └── KubernetesFault      the API server refused or could not be reached

Everything else that escapes is a bug. A fault names the object, the field and the fix, in one line.
"""

from __future__ import annotations


class Fault(Exception):
    """A failure with an owner: `where` is the file or object, `what` is wrong, `fix` says what to do."""

    def __init__(self, where: str, what: str, fix: str = "") -> None:
        self.where = where
        self.what = what
        self.fix = fix
        text = f"{where}: {what}" + (f" ({fix})" if fix else "")
        super().__init__(" ".join(text.split()))


class ConfigurationFault(Fault):
    """A file, flag or setting is wrong."""


class KernelFault(Fault):
    """A kernel file is missing, unreadable or holds something impossible."""


class KubernetesFault(Fault):
    """The API server refused a request or could not be reached; `status` is the HTTP code, 0 for no answer."""

    def __init__(self, where: str, what: str, fix: str = "", *, status: int = 0) -> None:
        self.status = status
        super().__init__(where, what, fix)
