"""How well do planners keep to their lane in bends, and does the car do what they planned? From stored drives.

    radp simulate --planner pdm_careful --scenarios sumo14-dev --out runs/careful
    python scripts/bends.py runs/careful runs/mine

A moment counts if the car moves and turns by more than 0.1 rad/s. Offset: metres of the rear axle beside the centre
line of its lane, plus is the outside of the bend. Miss: metres by which the car lies beside the pose that it planned
half a second ago, plus is the outside again; for drives that were stored with their plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tyro

from radp.evaluation.closed_loop import Run
from radp.planners.corridor import ego_on_line
from radp.planners.guides import make_guide
from radp.road.guide import GUIDE_SPACING, OVERRUN
from radp.scenario import DT, Ego
from radp.sim.rollout import Rollout

AHEAD = 5  # samples after which a plan is compared with what was driven
TURNING, MOVING = 0.1, 1.0  # rad/s, m/s
FARTHEST = 3.0  # m beside the line: further away the ego is on another lane


def offsets(drive: Rollout) -> Iterator[float]:
    guide = make_guide(drive.scenario.briefing)
    for ego in drive.ego[_in_bends(drive)]:
        line = guide.line(guide.lane_at(ego))
        _, lateral, _ = ego_on_line(ego, line.points, line.headings, GUIDE_SPACING, line.first_end + OVERRUN)
        if abs(lateral) < FARTHEST:
            yield -lateral * np.sign(ego[Ego.YAW_RATE])


def misses(drive: Rollout) -> Iterator[float]:
    if drive.plans is None:
        return
    for i in np.flatnonzero(_in_bends(drive)[:-AHEAD]):
        now, then, plan = drive.ego[i], drive.ego[i + AHEAD], drive.plans[i, AHEAD - 1]
        cos, sin = np.cos(now[Ego.HEADING]), np.sin(now[Ego.HEADING])
        moved = np.array([[cos, sin], [-sin, cos]]) @ (then[:2] - now[:2]) - plan[:2]
        yield -(plan[2] * moved[1] - plan[3] * moved[0]) * np.sign(now[Ego.YAW_RATE])


def _in_bends(drive: Rollout) -> np.ndarray:
    turned = np.gradient(np.unwrap(drive.ego[:, Ego.HEADING])) / DT
    return (np.abs(turned) > TURNING) & (drive.ego[:, Ego.VX] > MOVING)


def _words(values: list[float]) -> str:
    if not values:
        return "-"
    low, high = np.quantile(values, (0.05, 0.95))
    return f"{np.mean(values):+.2f}, rms {np.std(values):.2f}, 90 % in [{low:+.2f}, {high:+.2f}]"


def main(runs: tyro.conf.Positional[list[Path]]) -> None:
    """Print a table of these run folders."""
    print("| run | moments in bends | offset [m] | miss after 0.5 s [m] |\n|---|---|---|---|")
    for path in runs:
        drives = list(Run.open(path).rollouts())
        beside = [value for drive in drives for value in offsets(drive)]
        missed = [value for drive in drives for value in misses(drive)]
        print(f"| {path.name} | {len(beside)} | {_words(beside)} | {_words(missed)} |")


if __name__ == "__main__":
    tyro.cli(main)
