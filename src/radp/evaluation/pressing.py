"""Which rule presses on whom: the exact teacher's pressures on the plans of any planner, over whole drives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import run_simulation
from radp.evaluation.settings import PressureWatch, Simulation
from radp.runs.errors import BadInput
from radp.scenario.parts import log_of
from radp.sim.rollout import Rollout
from radp.statistics.bootstrap import means_of
from radp.statistics.estimate import Estimate


@dataclass(frozen=True)
class Pressing:
    """What presses on one planner. Every drive counts alike; a frame in which nothing presses has no strongest rule."""

    planner: str
    split: str
    agents: str
    drives: int
    rules: tuple[str, ...]
    mean: tuple[Estimate, ...]  # (M,) pressure
    strongest: tuple[Estimate, ...]  # (M,) share of the frames in which this rule presses most
    nothing: Estimate  # share of the frames in which none does

    def to_json(self) -> dict[str, Any]:
        by_rule = {
            rule: {"mean": mean.to_json(), "strongest": most.to_json()}
            for rule, mean, most in zip(self.rules, self.mean, self.strongest)
        }
        about = {"planner": self.planner, "split": self.split, "agents": self.agents, "drives": self.drives}
        return {**about, "nothing": self.nothing.to_json(), "rules": by_rule}


def pressing_of(rollouts: Iterable[Rollout], planner: str, split: str, agents: str) -> Pressing:
    """Of the drives with the teacher's pressures; BadInput where he was not asked."""
    rows, logs, rules = [], [], set()
    for rollout in rollouts:
        if rollout.failure is not None:
            continue
        if rollout.exact_pressures is None:
            raise BadInput(f"the drives of {planner} keep no exact pressures: drive them with --attribution teacher")
        rows.append(drive_row(rollout.exact_pressures))
        logs.append(log_of(rollout.scenario.token))
        rules.add(rollout.rules)
    if len(rules) != 1:
        raise BadInput(f"{planner} has no finished drives" if not rules else f"{planner}: drives of different rules")
    names = rules.pop()
    found = means_of(np.stack(rows, 1), groups=np.array(logs))
    count = len(names)
    return Pressing(
        planner, split, agents, len(rows), names, tuple(found[:count]), tuple(found[count:-1]), found[-1]
    )  # fmt: skip


def drive_row(pressures: np.ndarray) -> np.ndarray:
    """(K, M) -> (2M + 1,): mean pressures, shares of frames in which each presses most, share in which none does."""
    pressures = np.asarray(pressures, dtype=np.float64)
    some = pressures.max(1) > 0
    most = np.eye(pressures.shape[1])[pressures.argmax(1)] * some[:, None]
    return np.concatenate((pressures.mean(0), most.mean(0), [1.0 - some.mean()]))


def measure_pressing(
    watch: PressureWatch, out: Path, workers: int = 1, plan_timeout: float | None = None
) -> list[Pressing]:
    """Drive with the teacher beside each planner (what is there already is kept); all by the same usual levels."""
    found = []
    for planner in watch.planners:
        name, split = Path(planner).name, Path(watch.split).name
        job = Simulation(
            planner=planner, scenarios=watch.split, agents=watch.agents, limit=watch.limit, seed=watch.seed,
            attribution="teacher", calibration=watch.levels, rule_set=watch.rule_set,
        )  # fmt: skip
        folder = out / f"{split}-{watch.agents}-{name}-taught"
        run = run_simulation(job, folder, workers=workers, plan_timeout=plan_timeout)
        found.append(pressing_of(run.rollouts(), name, split, watch.agents))
    return found
