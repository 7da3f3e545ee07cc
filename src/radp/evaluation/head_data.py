"""What the attribution head is taught with: the usual levels of rules, and plans with what the teacher says of them."""

from __future__ import annotations

from pathlib import Path

from radp.attribution.cache import Cache, write_cache
from radp.attribution.calibration import Calibration
from radp.attribution.states import fit_calibration
from radp.evaluation.driven_states import chosen_rows, open_states
from radp.evaluation.settings import CachedStates, JudgedStates, LevelFit
from radp.model.network import DiffusionModel
from radp.model.paths import model_path
from radp.planners.diffusion import scene_config
from radp.planners.learned import load_planner_model
from radp.rules import needs_road, rule_set
from radp.runs.errors import BadInput
from radp.runs.settings import as_json, narrowed
from radp.scene.samples import Samples


def fit_levels(fit: LevelFit) -> Calibration:
    """kappa of each rule on the planner's own plans; the settings are kept in it."""
    model = load_planner_model(model_path(fit.planner))
    samples = _states(fit, model)
    rows = chosen_rows(samples, fit.batches * fit.batch, [fit.seed, 13])
    about = as_json(narrowed(LevelFit, fit))
    return fit_calibration(model, samples, rows, fit.batch, fit.seed, fit.rule_set, about)


def cache_states(cached: CachedStates, out: Path, workers: int = 1) -> Cache:
    """Fill the cache in the folder `out`, or go on with it."""
    path = model_path(cached.planner)
    model = load_planner_model(path)
    try:
        levels = Calibration.load(cached.calibration or path, cached.rule_set)
    except ValueError as error:
        raise BadInput(f"{error}; run radp calibrate first") from None
    samples = _states(cached, model)
    rows = chosen_rows(samples, cached.samples, [cached.seed, 11])
    return write_cache(out, model, samples, levels, rows, cached.seed, workers, cached.geometry)


def _states(judged: JudgedStates, model: DiffusionModel) -> Samples:
    scenes = scene_config(model.config, rules=True, road=needs_road(rule_set(judged.rule_set)))
    return open_states(judged.data, scenes, judged.stride)
