"""In which encoding an answer is written: JSON on one line, JSON with lines for people, or YAML.

Sources: https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources and
apiserver's `pkg/endpoints/handlers/negotiation` and `responsewriters` (who gets lines without asking).
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec
import yaml

from embedded.apiserver.apimachinery.objects import decode
from embedded.apiserver.apimachinery.status import not_acceptable
from embedded.apiserver.presentation.tables import is_form
from embedded.apiserver.request.messages import JSON, Request, Response

YAML = "application/yaml"
_NEGOTIATING = ("api", "apis")  # everything else, such as health, is what it is
_READ_BY_PEOPLE = ("curl", "Wget", "Mozilla/5.0")


def negotiated(request: Request) -> str:
    """The media type that the client likes best of those there are; raises 406 when it takes none of them."""
    if request.path.strip("/").partition("/")[0] not in _NEGOTIATING:
        return JSON
    given = (JSON,) if request.flag("watch") else (JSON, YAML)  # nobody streams YAML
    of_objects = request.path.strip("/") not in _NEGOTIATING  # there, what is asked for is a version of the document
    for pattern in _accepted(request.accept, of_objects):
        for media in given:
            if _admits(pattern, media):
                return media
    raise not_acceptable(f"only the following media types are accepted: {', '.join(given)}")


@lru_cache(maxsize=256)
def _accepted(accept: str, of_objects: bool) -> tuple[str, ...]:
    """The media types of an Accept header without parameters, the most welcome first."""
    clauses = [clause for clause in accept.split(",") if clause.strip()] or ["*/*"]
    found = sorted(
        (clause for clause in clauses if not of_objects or _has_known_form(clause)), key=_weight, reverse=True
    )
    return tuple(clause.partition(";")[0].strip().lower() for clause in found)


def _has_known_form(clause: str) -> bool:
    """Whether objects can be shown as asked: as they are, or in one of the forms of meta.k8s.io."""
    parameters = clause.replace(" ", "").split(";")[1:]
    return is_form(parameters) or not any(parameter.startswith("as=") for parameter in parameters)


def _weight(clause: str) -> float:
    found = re.search(r";\s*q=([01](?:\.\d*)?)\s*(?:;|$)", clause)
    return float(found[1]) if found else 1.0


def _admits(pattern: str, media: str) -> bool:
    return pattern in ("*", "*/*", "application/*", media)


async def written(response: Response, media: str, request: Request) -> Response:
    """The answer as the client wants to read it; what is no plain JSON object stays as it is."""
    if not response.body or response.content_type.partition(";")[0] != JSON:
        return response
    if media == YAML and response.content_type == JSON:
        try:  # in a thread: a long list takes seconds, which the other clients would have to wait
            body = await asyncio.to_thread(_as_yaml, response.body)
        except RecursionError:
            return response  # nested too deeply for YAML, and JSON says so in its Content-Type
        return replace(response, body=body, content_type=YAML)
    if _wants_lines(request):
        return replace(response, body=msgspec.json.format(response.body, indent=2))
    return response


def _wants_lines(request: Request) -> bool:
    """Browsers and command line tools get lines unless they ask for none."""
    asked = request.query.get("pretty", "")
    if asked:
        return asked in ("1", "t", "T", "true", "TRUE", "True")  # strconv.ParseBool
    return request.headers.get("user-agent", "").startswith(_READ_BY_PEOPLE)


_TAG = "tag:yaml.org,2002:"
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _QuotingDumper(_Dumper):  # type: ignore[misc,valid-type]
    """Quotes also the texts that other YAML readers than Python's take for a number or a truth."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    """Texts of several lines, such as files in a ConfigMap, stand there line by line."""
    return dumper.represent_scalar(_TAG + "str", text, style="|" if "\n" in text else None)


_QuotingDumper.add_representer(str, _text)
_QuotingDumper.add_implicit_resolver(
    _TAG + "float", re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?$"), list("-+.0123456789")
)
_QuotingDumper.add_implicit_resolver(_TAG + "int", re.compile(r"0o[0-7]+$"), ["0"])
_QuotingDumper.add_implicit_resolver(_TAG + "bool", re.compile("[yYnN]$"), list("yYnN"))


def _as_yaml(body: bytes) -> bytes:
    written: bytes = yaml.dump(decode(body), Dumper=_QuotingDumper, encoding="utf-8", allow_unicode=True, width=1 << 16)
    return written
