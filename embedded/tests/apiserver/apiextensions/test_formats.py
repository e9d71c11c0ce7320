"""The `format` keyword."""

import pytest

from embedded.apiserver.apiextensions.formats import admits_text, is_known

TEXTS = {
    "byte": ("YQ==", "YQ"),
    "cidr": ("10.0.0.0/8", "10.0.0.0"),
    "date": ("2026-02-28", "2026-02-30"),
    "date-time": ("2026-01-02T03:04:05.6+01:00", "2026-01-02"),
    "datetime": ("2026-01-02T03:04:05z", "03:04:05"),
    "duration": ("1h30m", "soon"),
    "email": ("a@example.com", "example.com"),
    "hostname": ("a-b.example.com", "a_b"),
    "ipv4": ("10.0.0.1", "10.0.0.256"),
    "ipv6": ("::1", "10.0.0.1"),
    "mac": ("01:23:45:67:89:ab", "01:23"),
    "uri": ("https://example.com/a", "example.com"),
    "uuid": ("c9646d5c-5ad7-4c4b-9d2a-0a0a5a3e3c11", "c9646d5c"),
    "uuid4": ("c9646d5c-5ad7-4c4b-9d2a-0a0a5a3e3c11", "c9646d5c-5ad7-1c4b-9d2a-0a0a5a3e3c11"),
}


@pytest.mark.parametrize(("name", "right", "wrong"), [(name, *pair) for name, pair in TEXTS.items()], ids=TEXTS)
def test_texts(name, right, wrong):
    """One of each kind."""
    assert admits_text(name, right) and not admits_text(name, wrong)


EDGES = {
    "a word of time": ("duration", "1 day", True),
    "another": ("duration", "2hours", True),
    "no time": ("duration", "1 daze of", False),
    "a path": ("uri", "/x", True),
    "one label": ("hostname", "localhost", True),
    "a short end": ("hostname", "a.b", False),
    "a dot at the end": ("hostname", "example.com.", False),
}


@pytest.mark.parametrize(("name", "text", "admitted"), EDGES.values(), ids=EDGES)
def test_edges(name, text, admitted):
    """As kube-apiserver 1.34.2 answers."""
    assert admits_text(name, text) is admitted


def test_other_formats_admit_everything():
    """password is for people, and unknown ones are kept only as documentation."""
    assert admits_text("password", "x") and admits_text("made-up", "x")


def test_some_formats_are_known():
    """With and without dashes."""
    assert is_known("date-time") and is_known("datetime") and is_known("password") and not is_known("made-up")
