"""How fast a model trains on this machine. Weights and scenes are random; shapes are real."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from radp.bench.model_processes import stepping_together
from radp.model.config import ModelConfig
from radp.model.dropout import torchs_own
from radp.model.loss import diffusion_loss
from radp.model.memory import keep_freed_memory
from radp.model.network import DiffusionModel, build_model
from radp.runs.timing import alternate, load_average, torch_threads
from radp.scene.scene import Scene

AGENTS_VALID, LANES_VALID = 0.65, 0.74  # the share of slots that real scenes fill
TRAIN_BATCH = 64


def bench_train(
    threads: int = 2, repeats: int = 3, batch: int = TRAIN_BATCH, config: str = "nuplan", seed: int = 0
) -> dict[str, Any]:
    """Samples per second of forward, backward, clipping and AdamW, dropout on, fp32.

    `threads` processes of one thread share the batch, as in `radp train base --processes`. Beside them, in turn: one
    process of so many threads, and the same with torch's own dropout, as a plain program has it.
    """
    kept = keep_freed_memory()
    make_step = partial(train_step, config, batch // threads, seed)
    with torch_threads(threads), stepping_together(make_step, threads) as (together, seconds):
        alone, processor = train_step(config, batch, seed), []

        def shared() -> None:
            together()
            processor.append(sum(seconds))

        def plain() -> None:
            with torchs_own():
                alone()

        taken, threaded, reference = alternate(shared, alone, plain, repeats=repeats, warm_up=1)
    model = ModelConfig.preset(config)
    return {
        "config": config,
        "processes": threads,
        "batch": batch,
        "dropout": model.encoder_dropout,
        "noise_draws": model.noise_draws,
        "keeps_freed_memory": kept,
        "samples_per_s": batch / taken.median,
        "samples_per_s_best": batch / taken.best,
        "cpu_ms_per_sample": 1e3 * min(processor) / batch,
        "threads": threads,
        "threads_samples_per_s": batch / threaded.median,
        "threads_cpu_ms_per_sample": 1e3 * threaded.cpu / batch,
        "reference_samples_per_s": batch / reference.median,
        "load_average": load_average(),
    }


def train_step(
    config: str, batch: int, seed: int, wrap: Callable[[nn.Module], nn.Module] = lambda module: module
) -> Callable[[], None]:
    """One step of training as a call; `wrap` makes the loss a module of several processes."""
    torch.manual_seed(seed)
    model = build_model(config, seed).train()
    loss = wrap(_Loss(model))
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    scene = bench_scene(model.config, batch, seed, futures=True)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss(scene).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()

    return step


class _Loss(nn.Module):
    def __init__(self, model: DiffusionModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, scene: Scene) -> Tensor:
        return diffusion_loss(self.model, scene).total()


def bench_scene(config: ModelConfig, batch: int, seed: int = 0, futures: bool = False) -> Scene:
    """Random scenes of the model's size, with as many valid agents and lanes as real ones have."""
    generator = torch.Generator().manual_seed(seed)

    def rows(count: int, share: float, *shape: int) -> Tensor:
        keep = torch.arange(count) < round(share * count)
        return torch.randn(batch, count, *shape, generator=generator) * keep.view(-1, *[1] * len(shape))

    agents = rows(config.agents, AGENTS_VALID, config.history, 11)
    lanes = rows(config.lanes, LANES_VALID, config.lane_points, 12)
    route = rows(config.route_lanes, 0.4, config.lane_points, 12)
    ego = torch.zeros(batch, 10)
    ego[:, 2] = 1.0
    return Scene(
        ego_current_state=ego,
        neighbor_agents_past=agents,
        static_objects=rows(config.static_objects, 0.4, 10),
        lanes=lanes,
        lanes_speed_limit=torch.full((batch, config.lanes, 1), 13.0),
        lanes_has_speed_limit=torch.ones(batch, config.lanes, 1, dtype=torch.bool),
        route_lanes=route,
        route_lanes_speed_limit=torch.full((batch, config.route_lanes, 1), 13.0),
        route_lanes_has_speed_limit=torch.ones(batch, config.route_lanes, 1, dtype=torch.bool),
        ego_agent_future=torch.randn(batch, config.horizon, 3, generator=generator) if futures else None,
        neighbor_agents_future=rows(config.agents, AGENTS_VALID, config.horizon, 3) if futures else None,
    ).validate()
