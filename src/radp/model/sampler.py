"""From noise to plans: DPM-Solver++(2M) in x_0 prediction, equal steps in log SNR, the current state pinned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from radp.model.config import ModelConfig
from radp.model.decoder import current_states
from radp.model.encoder import Encoding
from radp.model.network import DiffusionModel
from radp.model.schedule import alpha, call_times, denoising_times, half_log_snr, sigma
from radp.model.seam import close_seam
from radp.model.target import TargetSpace
from radp.scene.scene import EgoColumn, Scene

TEMPERATURE = 0.5
LOWER_ORDER_BELOW = 10  # with fewer steps the last one is first order, for stability

# x (C, P, 81, 4), index of the time -> estimate of the clean trajectory, same shape
Denoiser = Callable[[Tensor, int], Tensor]
# clean trajectory in metres (C, P, 81, 4), time -> gradient of an energy by it, same shape; energy goes UP along it
Guidance = Callable[[Tensor, float], Tensor]

GUIDANCE_STRENGTH = 0.5
GUIDANCE_TIMES = (0.005, 0.1)  # guidance acts strictly between


@dataclass(frozen=True)
class Trace:
    """Every denoising call: times (steps + 1,), states and estimates (steps + 1, C, P, 81, 4)."""

    times: Tensor
    states: Tensor
    estimates: Tensor


@dataclass(frozen=True)
class PlanSample:
    """B scenes, K samples each, P = ego (row 0) and its neighbours, T future steps of 0.1 s."""

    trajectories: Tensor  # (B, K, P, T, 4) x, y, cos, sin in metres, ego frame; (cos, sin) is not renormalised
    tokens: Tensor  # (B, K, P, d) of the last denoising call, before the final layer
    encoding: Encoding  # of the scenes, (B, S, d)
    trace: Trace | None


def solve(
    denoise: Denoiser, x: Tensor, current: Tensor, times: Tensor,
    guide: Callable[[Tensor, float], Tensor] | None = None, trace: list[tuple[Tensor, Tensor]] | None = None,
) -> Tensor:  # fmt: skip
    """x (C, P, 81, 4) at times[0], current (C, P, 4), times (steps + 1,) -> clean (C, P, 81, 4).

    With lambda = ln(alpha / sigma), h = lambda_t - lambda_s and D the estimate at s, extrapolated from the one before:
    x_t = sigma_t / sigma_s x_s - alpha_t (exp(-h) - 1) D. The last call, at the smallest time, gives the answer.
    `guide` (clean, time) -> direction added to an estimate.
    """
    steps = times.numel() - 1
    lambdas, alphas, sigmas = half_log_snr(times), alpha(times), sigma(times)
    previous = None
    x = pinned(x, current)
    for i in range(steps):
        estimate = denoise(x, i)
        if trace is not None:
            trace.append((x, estimate))
        if guide is not None:
            estimate = guide(pinned(estimate, current), float(times[i])) + estimate
        h = lambdas[i + 1] - lambdas[i]
        direction = estimate
        first_order = steps < LOWER_ORDER_BELOW and i == steps - 1
        if previous is not None and not first_order:
            ratio = h / (lambdas[i] - lambdas[i - 1])
            direction = estimate + 0.5 * ratio * (estimate - previous)
        x = pinned(sigmas[i + 1] / sigmas[i] * x - alphas[i + 1] * torch.expm1(-h) * direction, current)
        previous = estimate
    estimate = denoise(x, steps)
    if trace is not None:
        trace.append((x, estimate))
    return pinned(estimate, current)


def pinned(x: Tensor, current: Tensor) -> Tensor:
    """x (C, P, 81, 4) with the known state `current` (C, P, 4) at step 0."""
    return torch.cat((current.unsqueeze(2), x[:, :, 1:]), 2)


def guidance_direction(guidance: Guidance, space: TargetSpace) -> Callable[[Tensor, float], Tensor]:
    """Energy gradient in metres -> what to add to a clean estimate: 0.5 sigma^2 / alpha g, within the guided times.

    The network's Jacobian is taken as the identity, so no second denoising call is needed.
    """

    def direction(clean: Tensor, time: float) -> Tensor:
        if not GUIDANCE_TIMES[0] < time < GUIDANCE_TIMES[1]:
            return torch.zeros((), device=clean.device)
        gradient = space.gradient_from_metres(guidance(space.to_metres(clean), time))
        t = torch.tensor(time)
        return float(GUIDANCE_STRENGTH * sigma(t) ** 2 / alpha(t)) * gradient

    return direction


def plans_in_metres(model: DiffusionModel, clean: Tensor, scene: Scene) -> Tensor:
    """Clean trajectories (C, P, 81, 4) of a scene of B in metres, draws of one scene in a row -> plans (C, P, 80, 4).

    The seam of the ego's plan is closed if the model wants that.
    """
    joint = TargetSpace(model.config, model.normaliser).to_metres(clean)[:, :, 1:]
    if model.config.seam_s is None:
        return joint
    speed = scene.ego_current_state[:, EgoColumn.VX].clamp(min=0.0).repeat_interleave(len(clean) // len(scene))
    return torch.cat((close_seam(joint[:, 0], speed, model.config.seam_s).unsqueeze(1), joint[:, 1:]), 1)


def draw_plans(
    model: DiffusionModel,
    scene: Scene,
    *,
    steps: int | None = None,
    temperature: float = TEMPERATURE,
    samples: int = 1,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
    guidance: Guidance | None = None,
    trace: bool = False,
) -> PlanSample:
    """Scene of B in metres -> plans. Noise (B, K, P, T, 4) ~ N(0, 1) may be given; else `samples` are drawn. The model
    says how many `steps` if none are given.

    Encoder, route, cross-attention keys and values and the modulation of all times are computed once.
    """
    config, batch = model.config, len(scene)
    if noise is None:
        noise = torch.randn(batch, samples, config.predicted, config.horizon, 4, generator=generator)
    samples = noise.shape[1]
    observed = model.observe(scene)
    context, encoding = model.context(observed)
    times = denoising_times(steps or config.sampler_steps)
    calls = call_times(times).to(context.route.device)
    route = context.route.repeat_interleave(samples, 0)
    modulation = model.decoder.modulation(route, calls[:, None])
    current = current_states(observed, config.neighbours).repeat_interleave(samples, 0)
    tokens = current  # replaced in the first call

    def denoise(x: Tensor, call: int) -> Tensor:
        nonlocal tokens
        output, tokens = model.denoise(x, calls[call], modulation.at(call), context)
        return model.clean(x, calls[call], output)

    start = temperature * noise.to(current).flatten(0, 1)
    start = torch.cat((current.unsqueeze(2), start), 2)
    space = TargetSpace(config, model.normaliser)
    guide = guidance_direction(guidance, space) if guidance is not None else None
    record: list[tuple[Tensor, Tensor]] | None = [] if trace else None
    clean = solve(denoise, start, current, times, guide, record)
    joint = plans_in_metres(model, clean, scene)
    return PlanSample(
        trajectories=joint.unflatten(0, (batch, samples)),
        tokens=tokens.unflatten(0, (batch, samples)),
        encoding=encoding.whole(),
        trace=_trace(calls, record) if record is not None else None,
    )


sample_plans = torch.no_grad()(draw_plans)  # gradients are wanted only by explanations of a plan


def _trace(times: Tensor, record: Sequence[tuple[Tensor, Tensor]]) -> Trace:
    return Trace(times, torch.stack([x for x, _ in record]), torch.stack([estimate for _, estimate in record]))


def noise_of_seeds(seeds: Sequence[int], model: DiffusionModel, samples: int = 1) -> Tensor:
    """One seed for each scene -> noise (B, K, P, T, 4); a scene's noise does not depend on who else is in the batch."""
    return noise_for(seeds, model.config, samples)


def noise_for(seeds: Sequence[int], config: ModelConfig, samples: int = 1) -> Tensor:
    """`noise_of_seeds` for a model of these settings."""
    shape = (samples, config.predicted, config.horizon, 4)
    return torch.stack([torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in seeds])
