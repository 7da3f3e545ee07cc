"""The sampler as a table of numbers, which a program without torch can follow."""

from __future__ import annotations

from typing import Any

import torch

from radp.model.sampler import LOWER_ORDER_BELOW
from radp.model.schedule import T_MIN, alpha, denoising_times, half_log_snr, sigma


def solver_table(steps: int) -> dict[str, Any]:
    """times (steps + 1,) of the calls; for each step the weights of x, of the estimate and of its change.

    x <- keep x + take (D + more (D - D of the call before)); the estimate of the last call is the answer.
    """
    times = denoising_times(steps)
    lambdas, alphas, sigmas = half_log_snr(times), alpha(times), sigma(times)
    h = lambdas.diff()
    more = torch.cat((h.new_zeros(1), 0.5 * h[1:] / h[:-1]))
    if steps < LOWER_ORDER_BELOW:
        more[-1] = 0.0
    return {
        "solver": "DPM-Solver++(2M)",
        "times": [*times[:-1].tolist(), T_MIN],
        "keep": (sigmas[1:] / sigmas[:-1]).tolist(),
        "take": (-alphas[1:] * torch.expm1(-h)).tolist(),
        "more": more.tolist(),
    }
