"""radp calibrate and radp cache: what the attribution head is taught with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Calibrate:
    """Fit the usual gradient of each rule (kappa, the 75th percentile) on plans of a planner.

    Writes calibration.json for the paper's rules, calibration-SET.json for another rule set. Usual should mean usual
    while driving: take a run of the planner on training scenarios.

    Example:
        radp calibrate --planner radp-mini --data runs/samples --out runs/levels
        radp simulate --planner radp-mini --scenarios runs/train --out runs/own
        radp calibrate --planner radp-mini --data runs/own --rule-set v2 --out runs/levels
    """

    planner: str
    """Packaged model or planner folder."""
    data: Path
    """Run of `radp simulate` on training scenarios (its executed states), or samples made by `radp data samples`."""
    out: Path
    """Folder for the levels, usually the planner's own."""
    rule_set: str = "paper"
    """Rules that judge: paper, v2 (made for attribution), v2-2s, v2-discount, road (eight more)."""
    stride: int = 5
    """Samples (0.1 s) between two states of a drive."""
    batches: int = 100
    """Calibration batches."""
    batch: int = 64
    """Samples of a batch."""
    seed: int = 0
    """Decides samples and noise."""
    threads: int = 2
    """Torch threads."""

    def __call__(self) -> int:
        import torch

        from radp.attribution.states import fit_calibration
        from radp.evaluation.driven_states import chosen_rows, open_states
        from radp.model.paths import model_path
        from radp.planners.diffusion import scene_config
        from radp.planners.learned import load_planner_model
        from radp.rules import needs_road, rule_set
        from radp.runs.settings import as_json

        torch.set_num_threads(self.threads)
        model = load_planner_model(model_path(self.planner))
        scenes = scene_config(model.config, rules=True, road=needs_road(rule_set(self.rule_set)))
        samples = open_states(self.data, scenes, self.stride)
        about = as_json({name: value for name, value in vars(self).items() if name not in ("out", "threads")})
        rows = chosen_rows(samples, self.batches * self.batch, [self.seed, 13])
        calibration = fit_calibration(model, samples, rows, self.batch, self.seed, about, self.rule_set)
        self.out.mkdir(parents=True, exist_ok=True)
        calibration.save(self.out)
        for rule, kappa in zip(calibration.rules, calibration.kappa):
            print(f"{rule:12s} {kappa:.4g}")
        return 0


@dataclass(frozen=True)
class MakeCache:
    """Plan many samples with a frozen planner and keep what the head sees and what the teacher says.

    Example:
        radp cache --planner runs/radp-mini --data runs/samples --samples 100000 --out runs/cache-train
        radp cache --planner runs/radp-mini --data runs/own --rule-set v2 --out runs/cache-own
    """

    planner: str
    """Packaged model or planner folder."""
    data: Path
    """Run of `radp simulate` (its executed states), or samples made by `radp data samples`; take different road
    networks for training and validation."""
    out: Path
    """Folder of the cache; the same command goes on where it was stopped."""
    samples: int = 100_000
    """How many, drawn without repetition (at most as many as there are)."""
    rule_set: str = "paper"
    """Rules that judge: paper, v2 (made for attribution), v2-2s, v2-discount, road (eight more)."""
    stride: int = 5
    """Samples (0.1 s) between two states of a drive."""
    geometry: tuple[Literal["cheap", "full"], ...] = ("cheap",)
    """Geometry of the plans to keep for heads that see it; --geometry without a word keeps none."""
    calibration: Path | None = None
    """Folder with the levels of that rule set; the planner's own by default."""
    seed: int = 0
    """Decides samples and noise."""
    workers: int = 2
    """Processes."""

    def __call__(self) -> int:
        from radp.attribution.cache import write_cache
        from radp.attribution.calibration import Calibration
        from radp.evaluation.driven_states import chosen_rows, open_states
        from radp.model.paths import model_path
        from radp.planners.diffusion import scene_config
        from radp.planners.learned import load_planner_model
        from radp.rules import needs_road, rule_set
        from radp.runs.errors import BadInput

        path = model_path(self.planner)
        model = load_planner_model(path)
        try:
            scales = Calibration.load(self.calibration or path, self.rule_set)
        except ValueError as error:
            raise BadInput(f"{error}; run radp calibrate first") from None
        scenes = scene_config(model.config, rules=True, road=needs_road(rule_set(self.rule_set)))
        source = open_states(self.data, scenes, self.stride)
        rows = chosen_rows(source, self.samples, [self.seed, 11])
        made = write_cache(self.out, model, source, scales, rows, self.seed, self.workers, self.geometry)
        print(f"{self.out}: {len(made)} samples")
        return 0
