"""Planning again with the same noise when some road users are not there: what they do to the plan."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from radp.model.network import DiffusionModel
from radp.model.sampler import draw_plans, noise_of_seeds, sample_plans
from radp.scene.scene import Scene, map_tensors, present

AT_ONCE = 32  # scenes


class Replanner:
    """One moment: a scene (B = 1), noise that stays, and the n nearest road users that may be taken away.

    An absent road user is a row of zeros, as the model knows it. Everything else of the scene stays.
    """

    def __init__(self, model: DiffusionModel, scene: Scene, seed: int, most: int) -> None:
        size = model.config
        self.model = model
        self.scene = scene.crop(size.agents, size.static_objects, size.lanes, size.route_lanes)
        self.noise = noise_of_seeds([seed], model)
        there = present(self.scene.neighbor_agents_past[0, : size.neighbours, -1])
        self.rows = there.nonzero().flatten()[:most]  # (n,) rows of the scene
        self.past = self.scene.neighbor_agents_past[:, self.rows]  # (1, n, 21, 11)
        self._known: dict[tuple[bool, ...], Tensor] = {}
        self.plan = self.without(torch.zeros(1, len(self.rows), dtype=torch.bool))[0]
        self.alone = self.without(torch.ones(1, len(self.rows), dtype=torch.bool))[0]

    def __len__(self) -> int:
        return len(self.rows)

    def with_past(self, past: Tensor) -> Scene:
        """Pasts (K, n, 21, 11) of the n road users -> K scenes."""
        many = map_tensors(self.scene, lambda value: value.expand(len(past), *value.shape[1:]))
        agents = many.neighbor_agents_past.clone()
        agents[:, self.rows] = past.to(agents)
        return replace(many, neighbor_agents_past=agents)

    def without(self, gone: Tensor) -> Tensor:
        """gone (K, n) bool -> plans (K, 80, 4); each combination is planned once."""
        missing = [row for row in dict.fromkeys(tuple(map(bool, g)) for g in gone.tolist()) if row not in self._known]
        for first in range(0, len(missing), AT_ONCE):
            part = missing[first : first + AT_ONCE]
            past = self.past * ~torch.tensor(part, dtype=torch.bool)[:, :, None, None]
            drawn = sample_plans(self.model, self.with_past(past), noise=self._noise(len(part)))
            self._known.update(zip(part, drawn.trajectories[:, 0, 0]))
        return torch.stack([self._known[tuple(map(bool, g))] for g in gone.tolist()])

    def influence(self, past: Tensor) -> Tensor:
        """Pasts (K, n, 21, 11) -> (K,) metres that the plan lies from the one without any of the n, with gradients."""
        drawn = draw_plans(self.model, self.with_past(past), noise=self._noise(len(past)))
        return distance(drawn.trajectories[:, 0, 0], self.alone)

    def _noise(self, count: int) -> Tensor:
        return self.noise.expand(count, *self.noise.shape[1:])


def distance(plans: Tensor, other: Tensor) -> Tensor:
    """(..., H, 4), (..., H, 4) -> (...) mean distance in metres over the steps, with a gradient at 0 too."""
    return ((plans[..., :2] - other[..., :2]).square().sum(-1) + 1e-8).sqrt().mean(-1)
