"""The diffusion loss: noise the logged futures, let the model clean them, and compare."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radp.geometry.frames import pose_frame
from radp.model.config import ModelConfig
from radp.model.decoder import current_states
from radp.model.network import DiffusionModel
from radp.model.schedule import alpha, sigma, training_times
from radp.model.target import TargetSpace
from radp.scenario import DT
from radp.scene.scene import XY, Scene, present


@dataclass(frozen=True)
class Target:
    """What B scenes should become, clean, P = ego and neighbours, T future steps."""

    clean: Tensor  # (B, P, 1 + T, 4) target space, step 0 the current state; missing neighbours 0
    metres: Tensor  # (B, P, 1 + T, 4) x, y, cos, sin
    counted: Tensor  # (B, P, T) bool, steps that enter the loss
    waypoints_counted: Tensor  # (B, P, T) bool, the same for the loss on summed waypoints


@dataclass(frozen=True)
class DiffusionLoss:
    """Scalars neighbour and ego; output, estimate (B * K, P, 1 + T, 4): the network's answer, and the clean trajectory
    that it means, with the known current state at step 0; both in target space.
    """

    neighbour: Tensor
    ego: Tensor
    output: Tensor
    estimate: Tensor
    time: Tensor  # (B * K,) diffusion times of the draws

    def total(self, ego_weight: float = 1.0) -> Tensor:
        return self.neighbour + ego_weight * self.ego


def make_target(model: DiffusionModel, scene: Scene, observed: Scene) -> Target:
    """Scene in metres with futures, and the same normalised -> Target."""
    if scene.ego_agent_future is None or scene.neighbor_agents_future is None:
        raise ValueError("the diffusion loss needs scenes with futures")
    neighbours = model.config.neighbours
    ego, logged = continued(scene.ego_agent_future)
    futures = torch.cat((ego[:, None], scene.neighbor_agents_future[:, :neighbours]), 1)
    current = current_states(scene, neighbours)
    poses = pose_frame(futures)
    metres = torch.cat((current[:, :, None], poses), 2)
    there = present(futures)
    there[:, 0] = True
    known = present(current)
    known[:, 0] = True
    clean = TargetSpace(model.config, model.normaliser).from_metres(metres)
    clean = clean[:, :, 1:].masked_fill(~(there & known[..., None]).unsqueeze(-1), 0.0)
    counted = there
    if model.config.target_space == "velocity":  # a step is known where both of its ends are
        before = torch.cat((known[..., None], there[..., :-1]), -1)
        counted = there & before
        clean = clean.masked_fill(~counted.unsqueeze(-1), 0.0)
    waypoints = there & known[..., None]
    counted, waypoints = (torch.cat((logged[:, None], rows[:, 1:]), 1) for rows in (counted, waypoints))
    now = current_states(observed, neighbours)[:, :, None]
    return Target(torch.cat((now, clean), 2), metres, counted, waypoints)


def continued(future: Tensor) -> tuple[Tensor, Tensor]:
    """The ego's future (B, T, 3) -> the same, going on as in the last step where its log ends early; (B, T) bool, the
    steps that the log has. Rows of zeros at the end are no log, unless all rows are zero: then the ego stands.
    """
    steps = torch.arange(1, future.shape[1] + 1, device=future.device)
    last = (present(future) * steps).amax(-1)
    last = torch.where(last < 2, len(steps), last)  # it stands, or one step tells no speed
    logged = steps <= last[:, None]
    if bool(logged.all()):
        return future, logged
    end = future.gather(1, (last - 1)[:, None, None].expand(-1, 1, 3))
    step = end - future.gather(1, (last - 2)[:, None, None].expand(-1, 1, 3))
    step = torch.cat((step[..., XY], torch.zeros_like(step[..., :1])), -1)
    ahead = end + step * (steps - last[:, None]).unsqueeze(-1)
    return torch.where(logged[..., None], future, ahead), logged


def add_noise(target: Tensor, time: Tensor, noise: Tensor) -> Tensor:
    """Clean (C, P, 1 + T, 4), time (C,), noise (C, P, T, 4) -> x_t; the current state stays clean."""
    a, s = alpha(time).view(-1, 1, 1, 1), sigma(time).view(-1, 1, 1, 1)
    return torch.cat((target[:, :, :1], a * target[:, :, 1:] + s * noise), 2)


def diffusion_loss(
    model: DiffusionModel, scene: Scene, *, time: Tensor | None = None, noise: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> DiffusionLoss:  # fmt: skip
    """Scene of B in metres with futures -> losses. K draws for each scene stand in a row: time (B * K,), noise
    (B * K, P, T, 4); what is not given is drawn, with K = config.noise_draws.
    """
    config = model.config
    scene = scene.to(next(model.parameters()).device)
    observed = model.observe(scene)
    target = make_target(model, scene, observed)
    if time is None:
        time = training_times(len(scene), config.noise_draws, generator).to(target.clean.device)
    draws = time.numel() // len(scene)
    clean = target.clean.repeat_interleave(draws, 0)
    if noise is None:
        noise = torch.randn(clean[:, :, 1:].shape, generator=generator).to(clean.device)
    x = add_noise(clean, time, noise)
    output = model(observed, x, time)
    error = _step_error(output, clean, noise, time, config)
    neighbour, ego = _weighted_means(error, target.counted.repeat_interleave(draws, 0), config)
    if config.waypoint_loss_weight:
        extra = _waypoint_error(model, output, target.metres.repeat_interleave(draws, 0))
        more = _weighted_means(extra, target.waypoints_counted.repeat_interleave(draws, 0), config)
        neighbour = neighbour + config.waypoint_loss_weight * more[0]
        ego = ego + config.waypoint_loss_weight * more[1]
    # the network's own step 0 is not part of its answer: the current state is known
    estimate = torch.cat((clean[:, :, :1], model.clean(x, time, output)[:, :, 1:]), 2)
    return DiffusionLoss(neighbour, ego, output, estimate, time)


def _step_error(output: Tensor, clean: Tensor, noise: Tensor, time: Tensor, config: ModelConfig) -> Tensor:
    """-> (C, P, T): squared error of each future step, summed over its four channels."""
    future = output[:, :, 1:]
    if config.output == "score":
        return (future * sigma(time).view(-1, 1, 1, 1) + noise).square().sum(-1)
    return (future - clean[:, :, 1:]).square().sum(-1)


def _waypoint_error(model: DiffusionModel, output: Tensor, metres: Tensor) -> Tensor:
    """-> (C, P, T): squared error of the summed waypoints in the units of the state normaliser.

    The sum starts at the true current position: the network's own step 0 is not part of its answer.
    """
    space = TargetSpace(model.config, model.normaliser)
    moved = (output[:, :, 1:, XY] * space.metres_per_unit).cumsum(2)
    error = (metres[:, :, :1, XY] + moved - metres[:, :, 1:, XY]) / space.state.std[..., XY]
    return error.square().sum(-1)


def answer_distance(model: DiffusionModel, answer: Tensor, wanted: Tensor) -> Tensor:
    """Clean trajectories (C, P, 1 + T, 4) in target space -> (C, P): the error of the diffusion loss between both."""
    error = (answer - wanted)[:, :, 1:].square().sum(-1)
    if model.config.waypoint_loss_weight:
        metres = TargetSpace(model.config, model.normaliser).to_metres(wanted)
        error = error + model.config.waypoint_loss_weight * _waypoint_error(model, answer, metres)
    return _near_weighted(error, model.config).mean(-1)


def _near_weighted(error: Tensor, config: ModelConfig) -> Tensor:
    """(C, P, T) with more weight on near steps, if the model wants that."""
    if config.near_horizon_s is None:
        return error
    seconds = DT * torch.arange(1, error.shape[-1] + 1, device=error.device)
    weight = 1.0 / (seconds + config.near_horizon_s)
    return error * (weight / weight.mean())


def _weighted_means(error: Tensor, counted: Tensor, config: ModelConfig) -> tuple[Tensor, Tensor]:
    """error, counted (C, P, T) -> means over the counted steps of all neighbours (0 if none), and of the ego."""
    error = _near_weighted(error, config).masked_fill(~counted, 0.0)
    total, steps = (error[:, 1:].sum(), error[:, 0].sum()), (counted[:, 1:].sum(), counted[:, 0].sum())
    return total[0] / steps[0].clamp(min=1), total[1] / steps[1]
