"""The rulebook: tiers decide one after the other, tolerances make small differences none."""

from __future__ import annotations

import numpy as np
import pytest

from radp.rules import rule_set
from radp.rules.rulebook import TIER_NAMES, TIERS, TOLERANCES, prefer, tier_name, tier_of

NAMES = [name for names in TIERS for name in names]
OPPOSITE = {"better": "worse", "worse": "better", "incomparable": "incomparable", "equal": "equal"}


def test_every_rule_of_the_road_has_one_tier_and_one_tolerance():
    assert sorted(NAMES) == sorted(rule.name for rule in rule_set("road")) == sorted(TOLERANCES)
    assert len(TIER_NAMES) == len(TIERS) and tier_of("goal") == 4 and tier_of("collision") == 0 and tier_of("mine") == 5
    assert tier_name(0) == "safety" and tier_name(tier_of("mine")) == "no tier"


@pytest.mark.parametrize(
    ("differences", "outcome", "tier"),
    [
        ({}, "equal", None),
        ({"goal": 1.9, "comfort": -0.4}, "equal", None),  # within tolerances
        ({"goal": 40.0, "comfort": 9.0, "vulnerable": -0.3}, "better", 0),  # people on foot come before progress
        ({"collision": 0.01, "drivable": 2.0, "goal": -90.0}, "worse", 1),
        ({"speed": 4.0, "lane": -2.0, "goal": -50.0}, "incomparable", 2),  # a lower tier does not help
        ({"kinematics": 0.1, "goal": -5.0}, "better", 4),
    ],
)
def test_cases_by_hand(differences, outcome, tier):
    found = prefer(differences)
    assert (found.outcome, found.tier) == (outcome, tier)
    assert found.tier_name == ("" if tier is None else TIER_NAMES[tier])
    assert set(found.gains) | set(found.losses) <= set(differences)


def drawn(count: int) -> list[dict[str, float]]:
    """Differences of some rules each, most of them small."""
    draw = np.random.default_rng(5)
    return [
        {name: float(draw.normal(0, 3)) for name in NAMES if draw.random() < 0.3 and draw.random() < 0.8}
        for _ in range(count)
    ]


def test_turned_round_the_outcome_is_the_opposite():
    seen = set()
    for differences in drawn(300):
        there, back = prefer(differences), prefer({name: -value for name, value in differences.items()})
        assert back.outcome == OPPOSITE[there.outcome] and back.tier == there.tier
        assert (back.gains, back.losses) == (there.losses, there.gains)
        seen.add(there.outcome)
    assert seen == set(OPPOSITE)


def test_what_is_below_the_deciding_tier_does_not_matter():
    for differences in drawn(300):
        found = prefer(differences)
        if found.tier is not None and found.tier < 4:
            assert prefer({**differences, TIERS[found.tier + 1][0]: 50.0}) == found
