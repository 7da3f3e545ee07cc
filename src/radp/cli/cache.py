"""radp calibrate and radp cache: what the attribution head is taught with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Calibrate:
    """Fit the usual gradient of each rule (kappa, the 75th percentile) on plans of a planner; write calibration.json.

    Example:
        radp calibrate --planner runs/radp-mini --data runs/samples --out runs/radp-mini
    """

    planner: str
    """Packaged model or planner folder."""
    data: Path
    """Samples of the training split, made by `radp data samples`."""
    out: Path
    """Folder for calibration.json, usually the planner's own."""
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
        from radp.model.paths import model_path
        from radp.planners.diffusion import scene_config
        from radp.planners.learned import load_planner_model
        from radp.runs.settings import as_json
        from radp.training.data import open_samples

        torch.set_num_threads(self.threads)
        model = load_planner_model(model_path(self.planner))
        samples = open_samples(self.data, scene_config(model.config, rules=True))
        about = as_json({name: value for name, value in vars(self).items() if name not in ("out", "threads")})
        calibration = fit_calibration(model, samples, self.batches, self.batch, self.seed, about)
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
    """

    planner: str
    """Packaged model or planner folder."""
    data: Path
    """Samples made by `radp data samples`; take different road networks for training and validation."""
    out: Path
    """Folder of the cache; the same command goes on where it was stopped."""
    samples: int = 100_000
    """How many, drawn without repetition (at most as many as there are)."""
    calibration: Path | None = None
    """Folder with calibration.json; the planner's own by default."""
    seed: int = 0
    """Decides samples and noise."""
    workers: int = 2
    """Processes."""

    def __call__(self) -> int:
        import numpy as np

        from radp.attribution.cache import write_cache
        from radp.attribution.calibration import Calibration
        from radp.model.paths import model_path
        from radp.planners.diffusion import scene_config
        from radp.planners.learned import load_planner_model
        from radp.runs.errors import BadInput
        from radp.training.data import open_samples

        path = model_path(self.planner)
        model = load_planner_model(path)
        try:
            scales = Calibration.load(self.calibration or path)
        except ValueError as error:
            raise BadInput(f"{error}; run radp calibrate first") from None
        source = open_samples(self.data, scene_config(model.config, rules=True))
        rows = np.random.default_rng([self.seed, 11]).permutation(len(source))[: self.samples]
        made = write_cache(self.out, model, source, scales, rows, self.seed, self.workers)
        print(f"{self.out}: {len(made)} samples")
        return 0
