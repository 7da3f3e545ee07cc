"""radp calibrate and radp cache: what the attribution head is taught with."""

from __future__ import annotations

from pathlib import Path


def calibrate(
    planner: str, data: Path, out: Path, batches: int = 100, batch: int = 64, seed: int = 0, threads: int = 2
) -> int:
    """Fit the usual gradient of each rule (kappa, the 75th percentile) on plans of a planner; write calibration.json.

    Example:
        radp calibrate --planner runs/radp-mini --data runs/samples --out runs/radp-mini

    Args:
        planner: Packaged model or planner folder.
        data: Samples of the training split, made by `radp data samples`.
        out: Folder for calibration.json, usually the planner's own.
        batches: Calibration batches.
        batch: Samples of a batch.
        seed: Decides samples and noise.
        threads: Torch threads.
    """
    import torch

    from radp.attribution.online import RULE_SCENES
    from radp.attribution.states import fit_calibration
    from radp.model.paths import model_path
    from radp.planners.diffusion import scene_config
    from radp.planners.learned import load_planner_model
    from radp.training.data import open_samples

    torch.set_num_threads(threads)
    model = load_planner_model(model_path(planner))
    samples, rule_samples = open_samples(data, scene_config(model.config)), open_samples(data, RULE_SCENES)
    about = {"planner": planner, "data": str(data), "batches": batches, "batch": batch, "seed": seed}
    calibration = fit_calibration(model, samples, rule_samples, batches, batch, seed, about)
    out.mkdir(parents=True, exist_ok=True)
    calibration.save(out)
    for rule, kappa in zip(calibration.rules, calibration.kappa):
        print(f"{rule:12s} {kappa:.4g}")
    return 0


def cache(
    planner: str,
    data: Path,
    out: Path,
    samples: int = 100_000,
    calibration: Path | None = None,
    seed: int = 0,
    workers: int = 2,
) -> int:
    """Plan many samples with a frozen planner and keep what the head sees and what the teacher says.

    Example:
        radp cache --planner runs/radp-mini --data runs/samples --samples 100000 --out runs/cache-train

    Args:
        planner: Packaged model or planner folder.
        data: Samples made by `radp data samples`; take different road networks for training and validation.
        out: Folder of the cache; the same command goes on where it was stopped.
        samples: How many, drawn without repetition (at most as many as there are).
        calibration: Folder with calibration.json; the planner's own by default.
        seed: Decides samples and noise.
        workers: Processes.
    """
    import numpy as np

    from radp.attribution.cache import write_cache
    from radp.attribution.calibration import Calibration
    from radp.attribution.online import RULE_SCENES
    from radp.model.paths import model_path
    from radp.planners.diffusion import scene_config
    from radp.planners.learned import load_planner_model
    from radp.runs.errors import BadInput
    from radp.training.data import open_samples

    path = model_path(planner)
    model = load_planner_model(path)
    try:
        scales = Calibration.load(calibration or path)
    except ValueError as error:
        raise BadInput(f"{error}; run radp calibrate first") from None
    source, rule_source = open_samples(data, scene_config(model.config)), open_samples(data, RULE_SCENES)
    rows = np.random.default_rng([seed, 11]).permutation(len(source))[:samples]
    made = write_cache(out, model, source, rule_source, scales, rows, seed, workers)
    print(f"{out}: {len(made)} samples")
    return 0
