"""A planner's own denoising chain for training: single answers at a noisy input, and chains whose last calls learn."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radp.model.decoder import Context, current_states
from radp.model.encoder import Encoding
from radp.model.network import DiffusionModel
from radp.model.sampler import TEMPERATURE, pinned, solve
from radp.model.schedule import call_times, denoising_times
from radp.scene.scene import Scene


@dataclass(frozen=True)
class Known:
    """What a model needs of B scenes to answer any noisy trajectories of theirs."""

    model: DiffusionModel
    context: Context
    current: Tensor  # (B, P, 4) normalised pose now

    @classmethod
    def of(cls, model: DiffusionModel, observed: Scene, encoding: Encoding) -> Known:
        """From the normalised scene and its encoding."""
        return cls(model, model.decoder.context(observed, encoding), current_states(observed, model.config.neighbours))

    def answer(self, x: Tensor, time: Tensor) -> Tensor:
        """x (B * K, P, 81, 4), times (B * K,) -> the clean trajectories that the model means, step 0 as it is known."""
        draws = len(x) // len(self.current)
        modulation = self.model.decoder.modulation(self.context.route.repeat_interleave(draws, 0), time)
        output, _ = self.model.denoise(x, time, modulation, self.context)
        return pinned(self.model.clean(x, time, output), self.current.repeat_interleave(draws, 0))

    def draw(
        self, noise: Tensor, learning: int = 0, trace: list[tuple[Tensor, Tensor, Tensor]] | None = None
    ) -> Tensor:
        """noise (B, K, P, T, 4) -> clean trajectories (B * K, P, 81, 4), as the planner samples them.

        Only the last `learning` calls carry gradients. `trace` takes time (B * K,), input and answer of every call.
        """
        current = self.current.repeat_interleave(noise.shape[1], 0)
        times = denoising_times(self.model.config.sampler_steps)
        calls = call_times(times)
        first = len(calls) - learning

        def denoise(x: Tensor, call: int) -> Tensor:
            time = calls[call].expand(len(x))
            with torch.set_grad_enabled(call >= first):
                answer = self.answer(x, time)
            if trace is not None:
                trace.append((time, x, answer))
            return answer

        start = torch.cat((current.unsqueeze(2), TEMPERATURE * noise.to(current).flatten(0, 1)), 2)
        return solve(denoise, start, current, times)
