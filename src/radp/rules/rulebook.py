"""A rulebook: rules in tiers, after Censi et al., "Liability, Ethics, and Culture-Aware Behavior Specification using
Rulebooks" (2019). A higher tier decides before a lower one is looked at; within a tier no rule outweighs another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from radp.rules.rule import Rule

Outcome = Literal["better", "worse", "incomparable", "equal"]

TIERS: tuple[tuple[str, ...], ...] = (
    ("collision", "rss", "vulnerable"),
    ("drivable", "oncoming", "red_light", "right_of_way"),
    ("speed", "lane", "headway"),
    ("kinematics", "comfort"),
    ("goal", "flow"),
)
TIER_NAMES = ("safety", "law of the road", "order", "smoothness", "progress")

# Violations that differ by no more than this are the same: the rule's unit times seconds; goal: metres. Ours.
TOLERANCES: dict[str, float] = {
    "collision": 0.05, "rss": 5.0, "vulnerable": 0.2,
    "drivable": 0.1, "oncoming": 0.5, "red_light": 0.5, "right_of_way": 0.05,
    "speed": 1.0, "lane": 0.5, "headway": 3.0,
    "kinematics": 0.5, "comfort": 0.5,
    "goal": 2.0, "flow": 2.0,
}  # fmt: skip


@dataclass(frozen=True)
class Preference:
    """How one drive or planner stands to another, and what decides."""

    outcome: Outcome
    tier: int | None = None  # the first that decides, from 0; None: no tier does
    gains: tuple[str, ...] = ()  # rules of that tier that the first one keeps better
    losses: tuple[str, ...] = ()  # rules of that tier that it keeps worse

    @property
    def tier_name(self) -> str:
        return "" if self.tier is None else TIER_NAMES[self.tier] if self.tier < len(TIER_NAMES) else f"{self.tier + 1}"

    def to_json(self) -> dict[str, object]:
        return {"outcome": self.outcome, "tier": self.tier, "tier_name": self.tier_name,
                "gains": list(self.gains), "losses": list(self.losses)}  # fmt: skip


def prefer(differences: Mapping[str, float], tolerances: Mapping[str, float] = TOLERANCES) -> Preference:
    """Violations of the first minus those of the second, by rule -> who keeps the rulebook better.

    Tier by tier: better where some rule is kept better and none worse, incomparable where both happen. Rules without a
    difference (not measured), or whose difference is within its tolerance, say nothing.

    >>> from radp.rules.rulebook import prefer
    >>> prefer({"vulnerable": -1.0, "goal": 30.0}).outcome
    'better'
    >>> prefer({"speed": 4.0, "lane": -2.0}).tier_name
    'order'
    """
    for number, names in enumerate(TIERS):
        known = {name: differences[name] for name in names if name in differences}
        gains = tuple(name for name, value in known.items() if value < -tolerances.get(name, 0.0))
        losses = tuple(name for name, value in known.items() if value > tolerances.get(name, 0.0))
        if gains or losses:
            outcome: Outcome = "incomparable" if gains and losses else "better" if gains else "worse"
            return Preference(outcome, number, gains, losses)
    return Preference("equal")


def tier_of(rule: str) -> int:
    """The tier of a rule, from 0; rules that are in none, such as a user's own, come last."""
    return next((number for number, names in enumerate(TIERS) if rule in names), len(TIERS))


@dataclass(frozen=True)
class Tension:
    """What a plan gives up, and for which rule: of two rules that press on it, the higher one was kept."""

    keeps: str
    kept: float  # margin by which it is kept, in the unit of that rule
    gives_up: str
    given: float  # violation of the lower one, in its unit


def tension(violations: Mapping[str, float], pressures: Mapping[str, float]) -> Tension | None:
    """Largest violation and pressure of each rule on a plan -> what the plan trades, or None if it trades nothing.

    The rule that is given up is the violated one of the lowest tier, the one that is kept is the highest rule above it
    that is not violated and presses most.
    """
    broken = [name for name, value in violations.items() if value > 0]
    if not broken:
        return None
    loser = max(broken, key=lambda name: (tier_of(name), pressures.get(name, 0.0)))
    above = [
        name for name, value in violations.items()
        if tier_of(name) < tier_of(loser) and -float("inf") < value <= 0 and pressures.get(name, 0.0) > 0
    ]  # fmt: skip
    if not above:
        return None
    keeper = min(above, key=lambda name: (tier_of(name), -pressures[name]))
    return Tension(keeper, -violations[keeper], loser, violations[loser])


def tension_words(found: Tension, rules: Mapping[str, Rule], whom: str = "") -> str:
    """One sentence: "the plan gives up 3.0 m of progress along the route to keep 0.4 m to the cyclist"."""
    lost, kept = rules[found.gives_up], rules[found.keeps]
    margin = f"{found.kept:.1f} {kept.unit}"
    what = f"{margin} to {whom}" if whom else f"{kept.describes} by {margin}"
    return f"the plan gives up {found.given:.1f} {lost.unit} of {lost.describes} to keep {what}"
