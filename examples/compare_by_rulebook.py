"""Who drives better by the rulebook? Safety first, then the law of the road, order, smoothness, and progress last.

    python examples/compare_by_rulebook.py

The same on the command line: `radp score RUN_A RUN_B --rulebook`.
"""

from __future__ import annotations

import radp


def main(first: str = "idm", second: str = "constant_velocity", scenarios: int = 3) -> None:
    """Two planners on the same scenarios, drive by drive: the sentence, and the rules in which they differ."""
    split = radp.open_split("sumo14-val")[:scenarios]
    drives = [radp.simulate(radp.load_planner(name), split, agents="nonreactive") for name in (first, second)]
    for one, other in zip(*drives):
        found = radp.compare_drives(one, other)
        print(f"{found['token']}: {found['sentence']}")
        mine, theirs = found["violations"]
        for rule, amount in mine.items():
            if abs(amount - theirs.get(rule, 0.0)) > 0.1:
                print(f"    {rule:12s} {amount:8.2f} against {theirs.get(rule, 0.0):.2f}")


if __name__ == "__main__":
    main()
