"""radp calibrate and radp cache: what the attribution head is taught with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from radp.evaluation.settings import CachedStates, LevelFit
from radp.runs.engine import Engine
from radp.runs.json_text import json_text


@dataclass(frozen=True, kw_only=True)
class Calibrate(LevelFit):
    """Fit the usual gradient of each rule (kappa, the 75th percentile) on plans of a planner.

    Writes calibration.json for the paper's rules, calibration-SET.json for another rule set. Usual should mean usual
    while driving: take a run of the planner on training scenarios.

    Example:
        radp calibrate --planner radp-mini --data runs/samples --out runs/levels
        radp simulate --planner radp-mini --scenarios runs/train --out runs/own
        radp calibrate --planner radp-mini --data runs/own --rule-set v2 --out runs/levels
    """

    out: Path
    """Folder for the levels, usually the planner's own."""
    threads: int = 2
    """Torch threads."""
    json: bool = False
    """Print the levels as one JSON object."""

    def __call__(self) -> int:
        import torch

        from radp.evaluation.head_data import fit_levels

        torch.set_num_threads(self.threads)
        calibration = fit_levels(self)
        self.out.mkdir(parents=True, exist_ok=True)
        calibration.save(self.out)
        levels = dict(zip(calibration.rules, calibration.kappa))
        print(json_text(levels) if self.json else "\n".join(f"{rule:12s} {k:.4g}" for rule, k in levels.items()))
        return 0


@dataclass(frozen=True, kw_only=True)
class MakeCache(CachedStates):
    """Plan many samples with a frozen planner and keep what the head sees and what the teacher says.

    Take different road networks for training and validation.

    Example:
        radp cache --planner runs/radp-mini --data runs/samples --samples 100000 --out runs/cache-train
        radp cache --planner runs/radp-mini --data runs/own --rule-set v2 --out runs/cache-own
    """

    out: Path
    """Folder of the cache; the same command goes on where it was stopped."""
    workers: int = 2
    """Processes."""
    where: Engine = field(default_factory=Engine)

    def __call__(self) -> int:
        from radp.evaluation.head_data import cache_states

        made = cache_states(self, self.out, self.workers)
        print(f"{self.out}: {len(made)} samples")
        return 0
