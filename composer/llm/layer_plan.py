"""Plans that a model fills in: a strict JSON schema of what works, and from an answer the layer.

The schema offers only wirings (layout of the input, then operators in order) that were found to work with the
first value of every argument. The chosen layer is tried on small samples before it is written down; where
sizes, values or wiring turn out not to work together, the smallest sizes, the first values or the next wiring
take their place, and only where nothing works is the model told.
"""

import itertools
import json
import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from composer.llm.arguments import Choice, choices
from composer.llm.plan_trial import AXES, LayerFault, tried
from composer.plan import Plan
from composer.profiles import DeviceProfile
from composer.sizes import FASTEST, solve, wanted_seconds
from ops_crawler.operator import Operator

_LAYOUT_OF = MappingProxyType({"1d": "NCL", "2d": "NCHW"})
"""Operators of these endings would take other layouts too, with other axes for the channels."""

LAYOUTS = ("NF", "NLF", "NCL", "NCHW")
WIRINGS_MAX = 8
"""Wirings that a schema offers at most."""

_SMALL = MappingProxyType(dict.fromkeys(AXES, 16))
"""Sizes at which wirings are tried."""

_ARROW = " -> "

Answer = Mapping[str, Any]


class PlanFault(ValueError):
    """An answer gives no layer; the text is for the model."""


@lru_cache(maxsize=4096)
def wirings(operators: tuple[Operator, ...]) -> tuple[str, ...]:
    """Return the wirings of these operators that work, such as `NCHW -> torch.nn.Conv2d -> torch.sin`."""
    if any(choices(operator) is None for operator in operators):
        return ()
    found: list[str] = []
    for order, layout in itertools.product(itertools.permutations(operators), LAYOUTS):
        if any(layout != _LAYOUT_OF.get(operator.name[-2:], layout) for operator in order):
            continue
        try:
            tried(layout, _SMALL, [(operator, _first_values(operator)) for operator in order])
        except LayerFault:
            continue
        found.append(_ARROW.join((layout, *(operator.name for operator in order))))
        if len(found) == WIRINGS_MAX:
            break
    return tuple(found)


def usable(operators: Sequence[Operator]) -> list[Operator]:
    """Return the operators that make a layer by themselves."""
    return [operator for operator in operators if wirings((operator,))]


def schema_of(operators: Sequence[Operator]) -> dict[str, Any]:
    """Return the strict JSON schema of an answer."""
    found = wirings(tuple(operators))
    letters = sorted({letter for wiring in found for letter in wiring.partition(_ARROW)[0]} - {"N"})
    return _object(
        {
            "wiring": {"type": "string", "enum": list(found)},
            "sizes": _object({letter: {"type": "integer", "enum": list(AXES[letter])} for letter in letters}),
            "arguments": _object(
                {
                    operator.name: _object(
                        {name: _one_of(values) for name, values in (choices(operator) or {}).items()}
                    )
                    for operator in operators
                }
            ),
        }
    )


def example_of(operators: Sequence[Operator], rng: random.Random) -> Answer:
    """Return an answer that fits the schema, drawn at random."""
    schema = schema_of(operators)["properties"]
    return {
        "wiring": rng.choice(schema["wiring"]["enum"]),
        "sizes": {letter: rng.choice(size["enum"]) for letter, size in schema["sizes"]["properties"].items()},
        "arguments": {
            name: {argument: rng.choice(one["enum"]) for argument, one in arguments["properties"].items()}
            for name, arguments in schema["arguments"]["properties"].items()
        },
    }


def plan_of(text: str, operators: Sequence[Operator], profile: DeviceProfile, rng: random.Random) -> Plan:
    """Return the layer of an answer with its batch solved for the device. Raises PlanFault."""
    answer = _read(text)
    found = wirings(tuple(operators))
    wiring = answer.get("wiring")
    if wiring not in found:
        raise PlanFault(f"`wiring` is {wiring!r}; choose one of {', '.join(found)}")
    by_name = {operator.name: operator for operator in operators}
    sizes = _first_sizes() | _chosen(answer.get("sizes"), AXES)
    given = answer.get("arguments")
    chosen = {
        name: _first_values(operator) | _chosen_of(given, name, choices(operator) or {})
        for name, operator in by_name.items()
    }
    first = {name: _first_values(operator) for name, operator in by_name.items()}
    smallest = {letter: min(offered) for letter, offered in AXES.items()}
    fault = ""
    for other in (wiring, *(one for one in found if one != wiring)):
        layout, *names = other.split(_ARROW)
        for some_sizes, values in ((sizes, chosen), (smallest, chosen), (smallest, first)):
            try:
                plan = tried(layout, some_sizes, [(by_name[name], values[name]) for name in names])
                # a layer that only moves bytes may reach no more than the shortest time
                solved = solve(plan, profile, wanted_seconds(rng), rng) or solve(plan, profile, FASTEST, rng)
            except (LayerFault, RuntimeError) as error:  # the latter where other batches do not fit
                fault = fault or str(error)
                continue
            if solved is not None:
                return solved
            fault = fault or "no batch size gives a run time near the wanted one"
    raise PlanFault(fault)


def _read(text: str) -> Answer:
    """Return the JSON object of an answer, also from inside a fenced block."""
    start, end = text.find("{"), text.rfind("}")
    try:
        answer = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        raise PlanFault("that is no JSON object; answer with the object alone") from None
    if not isinstance(answer, dict):
        raise PlanFault("that is no JSON object; answer with the object alone")
    return answer


def _chosen_of(given: Any, name: str, offered: Mapping[str, Sequence[Choice]]) -> dict[str, Any]:
    return _chosen(given.get(name) if isinstance(given, dict) else None, offered)


def _chosen(given: Any, offered: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return those of the given values that were offered."""
    if not isinstance(given, dict):
        return {}
    return {
        name: next(value for value in values if value == given[name] and type(value) is type(given[name]))
        for name, values in offered.items()
        if any(value == given.get(name) and type(value) is type(given.get(name)) for value in values)
    }


def _first_values(operator: Operator) -> dict[str, Choice]:
    return {name: values[0] for name, values in (choices(operator) or {}).items()}


def _first_sizes() -> dict[str, int]:
    return {letter: sizes[0] for letter, sizes in AXES.items()}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_of(values: Sequence[Choice]) -> dict[str, Any]:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": kinds[type(values[0])], "enum": list(values)}
