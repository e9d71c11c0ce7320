"""Merging an applied configuration into an object, and taking fields out of one."""

from __future__ import annotations

from typing import Any

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.managedfields.paths import ITSELF, Paths, to_fields
from embedded.apiserver.managedfields.structure import ABSENT, Structure, joint, members, parts, schema_below, structure


def merged(schema: Object, live: Any, config: Any) -> Any:
    """The live value with the configuration merged in: what the configuration does not mention stays."""
    if live is ABSENT or config is ABSENT:
        return live if config is ABSENT else config
    found = joint(schema, live, config)
    before, wanted = members(found, live), members(found, config)
    if not before and not wanted:
        return config
    order = _order(list(before), list(wanted)) if found.is_list else list(before | wanted)
    result = {
        step: merged(schema_below(found, step), before.get(step, ABSENT), wanted.get(step, ABSENT)) for step in order
    }
    if found.is_list and len(live) > len(before):
        return _with_namesakes(found, live, result, wanted)
    return _rebuilt(found, list(result.items()))


def _with_namesakes(found: Structure, live: list[Any], result: dict[str, Any], wanted: dict[str, Any]) -> list[Any]:
    """Items that share an identity all stay where the configuration does not name them; else they become one."""
    namesakes: dict[str, list[Any]] = {}
    for step, item in parts(found, live):
        namesakes.setdefault(step, []).append(item)
    return [each for step, item in result.items() for each in ([item] if step in wanted else namesakes[step])]


def _rebuilt(found: Structure, kept: list[tuple[str, Any]]) -> Any:
    return [item for _, item in kept] if found.is_list else {step.removeprefix("f:"): item for step, item in kept}


def _order(live: list[str], config: list[str]) -> list[str]:
    """Items of both in the configuration's order; those only the live list has keep their place among the others."""
    wanted, common = set(config), [step for step in config if step in set(live)]
    result: list[str] = []
    left, right = 0, 0
    while left < len(live) or right < len(config):
        here = live[left] if left < len(live) else None
        if here is not None and here not in wanted:
            result.append(here)
            left += 1
        elif here is not None and (right == len(config) or (common and common[0] != here)):
            left += 1  # the configuration puts it elsewhere
        else:
            step = config[right]
            result.append(step)
            right += 1
            left += step == here
            if common and common[0] == step:
                common.pop(0)
    return result


def without(schema: Object, value: Any, paths: Paths) -> Any:
    """The value without the fields and items at these paths; ABSENT where that leaves nothing."""
    return _without(schema, value, to_fields(paths))


def _without(schema: Object, value: Any, gone: Object) -> Any:
    found = structure(schema, value)
    before = parts(found, value)
    if not gone or not before:
        return value
    thinned = [
        (step, _without(schema_below(found, step), item, gone.get(step, {})))
        for step, item in before
        if not _whole(gone.get(step))
    ]
    kept = [(step, item) for step, item in thinned if item is not ABSENT]
    return _rebuilt(found, kept) if kept else ABSENT


def _whole(fields: Object | None) -> bool:
    """Whether FieldsV1 names the field itself, not only something inside."""
    return fields is not None and (not fields or ITSELF in fields)
