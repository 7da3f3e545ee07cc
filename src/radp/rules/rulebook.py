"""A rulebook: rules in tiers, after Censi et al., "Liability, Ethics, and Culture-Aware Behavior Specification using
Rulebooks" (2019). A higher tier decides before a lower one is looked at; within a tier no rule outweighs another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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
        return "" if self.tier is None else tier_name(self.tier)

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


def tier_name(tier: int) -> str:
    """What a tier is about; rules that are in none come after all others."""
    return TIER_NAMES[tier] if tier < len(TIER_NAMES) else "no tier"
