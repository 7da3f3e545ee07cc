"""The noise schedule: variance preserving, beta(t) = 0.1 + 19.9 t for t in [0, 1]; x_t = alpha x_0 + sigma z."""

from __future__ import annotations

import torch
from torch import Tensor

BETA_MIN, BETA_MAX = 0.1, 20.0
T_MIN, T_MAX = 1e-3, 1.0


def log_alpha(t: Tensor) -> Tensor:
    """(...) -> (...): minus half the integral of beta from 0 to t."""
    return -0.25 * t**2 * (BETA_MAX - BETA_MIN) - 0.5 * t * BETA_MIN


def alpha(t: Tensor) -> Tensor:
    return log_alpha(t).exp()


def sigma(t: Tensor) -> Tensor:
    return torch.sqrt(1 - torch.exp(2 * log_alpha(t)))


def half_log_snr(t: Tensor) -> Tensor:
    """lambda(t) = ln alpha - ln sigma."""
    mean = log_alpha(t)
    return mean - 0.5 * torch.log(1 - torch.exp(2 * mean))


def time_of_half_log_snr(value: Tensor) -> Tensor:
    """Inverse of `half_log_snr`: t = u / ((sqrt(b0^2 + u) + b0) (b1 - b0)), u = 2 (b1 - b0) ln(1 + exp(-2 lambda))."""
    spread = BETA_MAX - BETA_MIN
    u = 2 * spread * torch.logaddexp(-2 * value, torch.zeros_like(value))
    return u / ((torch.sqrt(BETA_MIN**2 + u) + BETA_MIN) * spread)


def denoising_times(steps: int) -> Tensor:
    """(steps + 1,) float32 from 1 down to 1e-3, equally spaced in lambda (float32 throughout, as published)."""
    ends = half_log_snr(torch.tensor([T_MAX, T_MIN]))
    return time_of_half_log_snr(torch.linspace(float(ends[0]), float(ends[1]), steps + 1))


def call_times(times: Tensor) -> Tensor:
    """Denoising times (n + 1,) -> (n + 1,): when the network is asked, the last time for the clean plan."""
    return torch.cat((times[:-1], times.new_tensor([T_MIN])))


def training_times(scenes: int, draws: int = 1, generator: torch.Generator | None = None) -> Tensor:
    """(scenes * draws,) times in [1e-3, 1]; the draws of one scene stand in a row and share [0, 1] in equal strata."""
    place = torch.rand(scenes, draws, generator=generator)
    stratum = (torch.arange(draws) + place) / draws
    return (T_MIN + (T_MAX - T_MIN) * stratum).flatten()


def own_times(scenes: int, draws: int, steps: int, generator: torch.Generator | None = None) -> Tensor:
    """(scenes * draws,) of the times at which a sampler of so many steps asks, those of one scene in equal strata."""
    calls = call_times(denoising_times(steps))
    place = (torch.arange(draws) + torch.rand(scenes, draws, generator=generator)) / draws
    return calls[(place * len(calls)).long().clamp(max=len(calls) - 1)].flatten()
