"""A guide as a test reads it: the commands of its `console` blocks, and what each is promised to print.

A line that begins with `$ ` is a command, a backslash at its end continues it, what follows is its output. A comment before a block
says how its commands are run:

    <!-- guide: until=30 -->      repeat a command for up to 30 s, until it prints what is promised
    <!-- guide: fails -->         its exit code is not 0
    <!-- guide: pending=5/11 -->  what it needs comes with that issue: tried once, and it must not succeed before

In what is promised `...` stands for any lines, `…` for anything within a line but
for an amount above 0 right before the unit `m` or `Mi`, `xxxxx` for five random letters or digits; an age
stands for any age, an IP address for any address; runs of blanks are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

ANY_LINES = "..."
_BLOCK = re.compile(r"(?:<!-- guide: ([^>]*) -->\n)?```console\n(.*?)```", re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FREE = {
    r"…(?=(?:m|Mi)\b)": r"[1-9]\\d*",
    "…": ".*",
    r"\b\d+[smhd](?:\d+[smh])?(?![\w.])": r"\\d+[smhd](?:\\d+[smh])?",
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b": r"\\d+(?:\\.\\d+){3}",
    r"xxxxx": "[a-z0-9]{5}",
}


@dataclass(frozen=True)
class Step:
    """One command; `promised` are the lines it prints, none where anything will do."""

    number: int
    heading: str
    command: str
    promised: tuple[str, ...] = ()
    until_seconds: float = 0.0
    pending: str = ""
    fails: bool = False

    @property
    def id(self) -> str:
        """The name of its test."""
        return f"{self.number:02}-{self.command.splitlines()[0][:60]}"


@dataclass
class _Open:
    command: list[str] = field(default_factory=list)
    promised: list[str] = field(default_factory=list)


def steps(text: str) -> tuple[Step, ...]:
    """All commands of a guide in their order.

    Raises ValueError for a block that does not begin with a command, and for a command outside of any block.
    """
    found: list[Step] = []
    for block in _BLOCK.finditer(text):
        options = options_of(block[1] or "")
        heading = [title[1] for title in _HEADING.finditer(text, 0, block.start())][-1:]
        for command, promised in commands_of(block[2]):
            found.append(
                Step(
                    len(found) + 1,
                    "".join(heading),
                    command,
                    promised,
                    float(options.get("until", 0)),
                    options.get("pending", ""),
                    "fails" in options,
                )
            )
    if text.count("\n$ ") != len(found):
        raise ValueError(f"{text.count(chr(10) + '$ ')} lines look like commands, {len(found)} are in console blocks")
    return tuple(found)


def options_of(text: str) -> dict[str, str]:
    """The words of the comment before a block."""
    options = dict(word.partition("=")[::2] for word in text.split())
    if unknown := set(options) - {"until", "pending", "fails"}:
        raise ValueError(f"guide: {text}: {', '.join(sorted(unknown))} is no option")
    return options


def commands_of(block: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The commands of a `console` block, each with the lines that it prints."""
    lines: list[_Open] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            lines.append(_Open([line[2:]]))
        elif not lines:
            raise ValueError(f"a block begins with {line!r}, not with a command")
        elif lines[-1].command[-1].endswith("\\") and not lines[-1].promised:
            lines[-1].command.append(line.removeprefix("> "))
        else:
            lines[-1].promised.append(line)
    return (("\n".join(one.command), tuple(one.promised)) for one in lines)


def unmet(promised: tuple[str, ...], printed: str) -> str:
    """What of a promise the printed text breaks; empty where it is kept."""
    lines = [_squeezed(line) for line in printed.splitlines() if line.strip()]
    wanted = [line for line in promised if line.strip()]
    if not wanted:
        return ""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == ANY_LINES else _pattern(line) + "\n" for line in wanted)
    if re.fullmatch(pattern, "".join(line + "\n" for line in lines)):
        return ""
    return "promised:\n" + "\n".join(wanted) + "\nprinted:\n" + printed


def _pattern(line: str) -> str:
    """The line as a regular expression; what stands for something else is found before anything is quoted."""
    found = re.compile("|".join(f"({free})" for free in _FREE))
    squeezed, at, parts = _squeezed(line), 0, []
    replacements = [text.replace("\\\\", "\\") for text in _FREE.values()]
    for match in found.finditer(squeezed):
        parts += [re.escape(squeezed[at : match.start()]), replacements[(match.lastindex or 1) - 1]]
        at = match.end()
    return "".join([*parts, re.escape(squeezed[at:])])


def _squeezed(line: str) -> str:
    return " ".join(line.split())
