"""Who drives better by the rulebook? Safety first, then the law of the road, order, smoothness, and progress last.

    python examples/compare_by_rulebook.py

The same on the command line: `radp score RUN_A RUN_B --rulebook`.
"""

from __future__ import annotations

import radp
from radp.evaluation.rulebook import compare_drives, comparison_text
from radp.rules.rulebook import TIER_NAMES, TIERS


def main(first: str = "idm", second: str = "constant_velocity", scenarios: int = 3) -> None:
    """Two planners on the same scenarios, drive by drive."""
    for number, (name, rules) in enumerate(zip(TIER_NAMES, TIERS), 1):
        print(f"{number}. {name}: {', '.join(rules)}")
    split = radp.open_split("sumo14-val")[:scenarios]
    pairs = zip(*(radp.simulate(radp.load_planner(name), split, agents="nonreactive") for name in (first, second)))
    for one, other in pairs:
        print()
        print(comparison_text(compare_drives(one, other)))


if __name__ == "__main__":
    main()
