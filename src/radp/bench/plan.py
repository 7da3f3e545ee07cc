"""How fast a model plans on this machine: a plain reference, eager torch, and what runs its export, in one run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from radp.bench.model import bench_scene
from radp.model.decoder import current_states
from radp.model.network import DiffusionModel, build_model
from radp.model.sampler import TEMPERATURE, draw_plans, noise_of_seeds, sample_plans, solve
from radp.model.schedule import T_MIN, denoising_times
from radp.model.target import TargetSpace
from radp.planners.backends import EXPORTER, on_backend
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.onnx import OnnxPlanner
from radp.runs.timing import Taken, alternate, load_average, torch_threads
from radp.runtime.sessions import installed
from radp.scene.scene import INPUT_FIELDS, Scene

BATCHES, MINI = (1, 32), "mini"
PRODUCT = 1024  # rows and columns of the matrices that show what the machine can do
Call = Callable[[], Any]


def bench_plan(threads: int = 1, repeats: int = 20, config: str = "nuplan", seed: int = 0) -> dict[str, Any]:
    """By batch and path: milliseconds of wall and of processor time a scene, GFLOP/s, and how many times as fast as the
    reference. All paths take turns and must give the same plans. The reference computes route, keys, values and
    modulation in each denoising call, on all slots, with one kernel for each operation. Beside the paths of a full-size
    model, eager torch on a mini one."""
    with torch_threads(threads):
        model, mini = _model(config, seed), _model(MINI, seed) if config != MINI else None
        engines = _engines(model, config, threads)
        figures = {str(batch): _at_batch(model, mini, engines, batch, repeats, seed) for batch in BATCHES}
        rate = _product_rate()
    return {
        "config": config,
        "threads": threads,
        "batches": figures,
        "matrix_product_gflop_per_s": rate,
        "load_average": load_average(),
    }


def _at_batch(
    model: DiffusionModel,
    mini: DiffusionModel | None,
    engines: dict[str, OnnxPlanner],
    batch: int,
    repeats: int,
    seed: int,
) -> dict[str, Any]:
    scene, noise = bench_scene(model.config, batch, seed), noise_of_seeds(range(batch), model)
    arrays = {name: getattr(scene, name).numpy() for name in INPUT_FIELDS}
    paths: dict[str, Call] = {
        "reference": lambda: plan_plainly(model, scene, noise)[:, 0],
        "eager": lambda: sample_plans(model, scene, noise=noise).trajectories[:, 0],
    }
    for name, planner in engines.items():
        paths[name] = partial(_run, planner, arrays, noise[:, 0].numpy())
    expected = paths["reference"]()
    for path in paths.values():
        torch.testing.assert_close(path(), expected, atol=1e-3, rtol=1e-4)
    work = dict.fromkeys(paths, _gflop(model, scene, noise))
    if mini is not None:
        given = bench_scene(mini.config, batch, seed), noise_of_seeds(range(batch), mini)
        paths["mini"], work["mini"] = lambda: sample_plans(mini, given[0], noise=given[1]), _gflop(mini, *given)
    taken = alternate(*paths.values(), repeats=repeats if batch == 1 else max(3, repeats // 4))
    shown = {name: _figures(one, taken[0], batch, work[name]) for name, one in zip(paths, taken)}
    return {"gflop_per_plan": work["reference"], **shown}


def _gflop(model: DiffusionModel, scene: Scene, noise: Tensor) -> float:
    """Of one plan of a batch. With gradients enabled, since fused kernels are not counted."""
    with FlopCounterMode(display=False) as counter, torch.enable_grad():
        draw_plans(model, scene, noise=noise)
    return counter.get_total_flops() / len(scene) / 1e9


def _run(planner: OnnxPlanner, arrays: dict[str, np.ndarray], noise: np.ndarray) -> Tensor:
    return torch.from_numpy(planner.runtime.run(arrays, noise)[0])


def _figures(taken: Taken, reference: Taken, batch: int, gflop: float) -> dict[str, float]:
    return {
        "wall_ms": 1e3 * taken.median / batch,
        "cpu_ms": 1e3 * taken.cpu / batch,
        "gflop_per_s": gflop * batch / taken.cpu,
        "times_as_fast": reference.cpu / taken.cpu,
    }


def _engines(model: DiffusionModel, config: str, threads: int) -> dict[str, OnnxPlanner]:
    """What is installed here to run the export of this model; nothing if it cannot be exported."""
    if not all(find_spec(name) for name in EXPORTER):
        return {}
    planner = DiffusionPlanner(model, f"bench-{config}")
    made = {name: on_backend(planner, name, threads) for name in installed()}
    return {name: one for name, one in made.items() if isinstance(one, OnnxPlanner)}


def _product_rate() -> float:
    """GFLOP/s of processor time of one large product of matrices."""
    a, b = torch.randn(PRODUCT, PRODUCT), torch.randn(PRODUCT, PRODUCT)
    (taken,) = alternate(lambda: a @ b, repeats=10)
    return 2 * PRODUCT**3 / taken.cpu / 1e9


@torch.enable_grad()  # the short cuts are for calls without gradients; the weights want none, so nothing is recorded
def plan_plainly(model: DiffusionModel, scene: Scene, noise: Tensor) -> Tensor:
    """(B, K=1, P, T, 4) as `sample_plans`, but each denoising call makes route, keys, values and modulation anew."""
    observed = model.observe(scene)
    encoding = model.encoder(observed)
    times = denoising_times(model.config.sampler_steps)
    calls = torch.cat((times[:-1], times.new_tensor([T_MIN])))

    def denoise(x: Tensor, call: int) -> Tensor:
        context = model.decoder.context(observed, encoding)
        now = calls[call].expand(len(scene))
        output, _ = model.denoise(x, now, model.decoder.modulation(context.route, now), context)
        return model.clean(x, now, output)

    current = current_states(observed, model.config.neighbours)
    start = torch.cat((current.unsqueeze(2), TEMPERATURE * noise[:, 0]), 2)
    space = TargetSpace(model.config, model.normaliser)
    return space.to_metres(solve(denoise, start, current, times))[:, None, :, 1:]


def _model(config: str, seed: int) -> DiffusionModel:
    """A new model. Its zero-initialised layers are given weights: it would answer 0, and let a wrong path pass the
    check."""
    model, generator = build_model(config, seed).eval().requires_grad_(False), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.copy_(0.02 * torch.randn(parameter.shape, generator=generator))
    return model
