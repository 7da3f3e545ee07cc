"""The learned planner: a diffusion model that plans in closed loop."""

from __future__ import annotations

import torch

from radp.model.network import DiffusionModel
from radp.model.sampler import STEPS, TEMPERATURE, Guidance, noise_of_seeds, sample_plans
from radp.scene.builder import SceneConfig, build_scenes
from radp.scene.observation import Observation
from radp.scene.plan import Plan
from radp.scene.scene import Scene


def scene_config(model: DiffusionModel) -> SceneConfig:
    """How scenes are built for a model: its sizes, its form of the route."""
    size = model.config
    return SceneConfig(
        agents=size.agents,
        static_objects=size.static_objects,
        lanes=size.lanes,
        route_lanes=size.route_lanes,
        neighbor_futures=size.agents,
        route_order=size.route_order,
        yellow_is_unknown=size.yellow_is_unknown,
        ego_dynamics=True,  # the network does not read them, the rules do
    )


class DiffusionPlanner:
    """Plans by denoising; `steps`, `temperature` and `guidance` as in `sample_plans`."""

    def __init__(
        self,
        model: DiffusionModel,
        name: str = "diffusion",
        steps: int = STEPS,
        temperature: float = TEMPERATURE,
        guidance: Guidance | None = None,
    ) -> None:
        self.model, self.name = model.eval(), name
        self.steps, self.temperature, self.guidance = steps, temperature, guidance
        self.scenes = scene_config(model)

    def plan(self, now: Observation | Scene, generator: torch.Generator | None = None) -> Plan:
        """A plan for each world or scene. In closed loop the noise comes from the observation's own seeds."""
        if isinstance(now, Observation):
            scene = build_scenes(now, self.scenes)
            noise = noise_of_seeds([int(seed) >> 1 for seed in now.seeds], self.model)
        else:
            scene, noise = now, None
        drawn = sample_plans(
            self.model,
            scene,
            steps=self.steps,
            temperature=self.temperature,
            noise=noise,
            generator=generator,
            guidance=self.guidance,
        )
        joint = drawn.trajectories[:, 0]
        return Plan(trajectory=joint[:, 0], predictions=joint[:, 1:])
