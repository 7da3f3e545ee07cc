"""What the page asks for, checked: every value has its type and its bounds before anything is done with it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from radp.runs.errors import BadInput, one_line
from radp.sim.settings import AGENT_MODES
from radp.studio.edits import Edit, parse_edits

MOST_WEIGHT, MOST_STRENGTH, MOST_SEED = 100.0, 10.0, 2**31
MOST_PLANS, MOST_NOISE = 32, 4.0


@dataclass(frozen=True)
class RuleChoice:
    """Rules that are switched off, weights that replace the rules' own, and how hard rules pull at a plan."""

    off: frozenset[str] = frozenset()
    weights: dict[str, float] = field(default_factory=dict)
    strength: float = 0.0  # of guidance; 0 = the planner as it is

    @property
    def steers(self) -> bool:
        """Whether plans may change."""
        return self.strength > 0


@dataclass(frozen=True)
class WhatIf:
    """A moment of a scenario with its edits, who plans there, and how."""

    scenario: int
    planner: str
    step: int
    edits: list[Edit]
    rules: RuleChoice
    agents: str = "reactive"
    seed: int = 0
    fan: int = 0  # plans that are sampled beside the one
    noise: float = 1.0  # of those plans, in parts of the planner's own


def read_json(body: bytes) -> dict[str, Any]:
    """One JSON object; NaN and infinities, which JSON does not have, are refused."""

    def refuse(name: str) -> None:
        raise BadInput(f"{name} is not a number of JSON")

    try:
        data = json.loads(body, parse_constant=refuse)
    except BadInput:
        raise
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not readable as JSON ({one_line(error, 100)})") from None
    if not isinstance(data, dict):
        raise BadInput(f"expected one JSON object, found {type(data).__name__}")
    return data


def parse_what_if(data: dict[str, Any]) -> WhatIf:
    """BadInput names the field that is wrong."""
    known = {"scenario", "planner", "step", "edits", "rules", "agents", "seed", "fan", "noise"}
    if strange := sorted(set(data) - known):
        raise BadInput(f"unknown field {one_line(strange[0], 40)!r}")
    planner = data.get("planner", "")
    if not isinstance(planner, str):
        raise BadInput("planner is not a text")
    agents = data.get("agents", "reactive")
    if agents not in AGENT_MODES:
        raise BadInput(f"agents is {one_line(agents, 40)!r}, expected one of {', '.join(AGENT_MODES)}")
    return WhatIf(
        scenario=_whole(data, "scenario", 2**31),
        planner=planner,
        step=_whole(data, "step", 2**31),
        edits=parse_edits(data.get("edits", [])),
        rules=_rules(data.get("rules", {})),
        agents=agents,
        seed=_whole(data, "seed", MOST_SEED),
        fan=_whole(data, "fan", MOST_PLANS),
        noise=_number(data.get("noise", 1.0), "noise", MOST_NOISE),
    )


def _whole(data: dict[str, Any], name: str, most: int) -> int:
    value = data.get(name, 0)
    if type(value) is not int or not 0 <= value <= most:
        raise BadInput(f"{name} is {one_line(value, 40)}, expected a whole number from 0 to {most}")
    return value


def _number(value: Any, name: str, most: float) -> float:
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or not 0 <= value <= most or not math.isfinite(value):
        raise BadInput(f"{name} is {one_line(value, 40)}, expected a number from 0 to {most:g}")
    return float(value)


def _rules(data: Any) -> RuleChoice:
    if not isinstance(data, dict) or set(data) - {"off", "weights", "strength"}:
        raise BadInput("rules is not an object of off, weights and strength")
    off, weights = data.get("off", []), data.get("weights", {})
    if not isinstance(off, list) or not all(isinstance(name, str) for name in off):
        raise BadInput("rules.off is not a list of names")
    if not isinstance(weights, dict):
        raise BadInput("rules.weights is not an object of numbers")
    return RuleChoice(
        frozenset(off),
        {name: _number(value, f"the weight of {one_line(name, 40)}", MOST_WEIGHT) for name, value in weights.items()},
        _number(data.get("strength", 0.0), "rules.strength", MOST_STRENGTH),
    )
