"""How a guide is read, and when what it promises is kept."""

from __future__ import annotations

import pytest

from tests.e2e.guides.guide import steps, unmet

GUIDE = """# A guide
## First
```console
$ kubectl get pods \\
>   -n demo
NAME
a
$ kubectl get nodes
```
```yaml
not: a command
```
## Second
<!-- guide: until=20 pending=5/11 fails -->
```console
$ kubectl wait
```
"""


def test_commands_come_with_output_heading_and_options() -> None:
    first, second, third = steps(GUIDE)
    assert (first.command, first.promised, first.heading) == ("kubectl get pods \\\n  -n demo", ("NAME", "a"), "First")
    assert (second.command, second.promised, second.pending) == ("kubectl get nodes", (), "")
    assert (third.heading, third.until_seconds, third.pending) == ("Second", 20.0, "5/11")
    assert (third.fails, second.fails) == (True, False)


@pytest.mark.parametrize(
    "text", ["```console\nno command\n```", "<!-- guide: untli=3 -->\n```console\n$ a\n```", "text\n$ a"]
)
def test_a_block_that_cannot_be_run_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        steps(text)


KEPT = {
    "nothing is promised": ((), "anything\n"),
    "the very line": (("a b",), "a b\n"),
    "blanks do not count": (("a b  ",), "  a    b\n\n"),
    "any lines, also none": (("...", "a", "...", "b", "..."), "x\na\nb\n"),
    "anything in a line": (("pod/… created",), "pod/a-1 created\n"),
    "an age": (("a 12s",), "a 3m4s\n"),
    "an address": (("10.244.1.10",), "127.0.0.1\n"),
    "letters of a generated name": (("job-xxxxx  1/1",), "job-4fz2k 1/1\n"),
    "an amount in use": (("a …m …Mi …%",), "a 1027m 20Mi 0%\n"),
    "signs mean themselves": (("a.b (c) 50%",), "a.b (c) 50%\n"),
}
BROKEN = {
    "another line": (("a",), "b\n"),
    "one line more": (("a",), "a\nb\n"),
    "one line less": (("a", "b"), "a\n"),
    "another order": (("...", "a", "b"), "b\na\n"),
    "an amount is no age": (("2000",), "3000\n"),
    "no CPU is in use": (("a …m",), "a 0m\n"),
    "no memory is in use": (("a …Mi",), "a 0Mi\n"),
    "a dot is a dot": (("a.b",), "axb\n"),
    "the name is too short": (("job-xxxxx",), "job-4fz\n"),
    "nothing where something is promised": (("a …",), "a\n"),
}


@pytest.mark.parametrize(("promised", "printed"), KEPT.values(), ids=KEPT.keys())
def test_a_promise_is_kept(promised: tuple[str, ...], printed: str) -> None:
    assert unmet(promised, printed) == ""


@pytest.mark.parametrize(("promised", "printed"), BROKEN.values(), ids=BROKEN.keys())
def test_a_promise_is_broken(promised: tuple[str, ...], printed: str) -> None:
    assert "promised:" in unmet(promised, printed)
