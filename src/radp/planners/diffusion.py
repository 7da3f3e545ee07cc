"""The learned planner: a diffusion model that plans in closed loop, and reports its rule pressures if it has a head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
import torch

from radp.model.config import ModelConfig
from radp.model.head import AttributionHead, head_inputs
from radp.model.network import DiffusionModel
from radp.model.rule_weights import conditioned, log_weights
from radp.model.sampler import TEMPERATURE, Guidance, PlanSample, noise_of_seeds, sample_plans
from radp.scene.builder import SceneConfig, build_scenes
from radp.scene.scene import EgoColumn, Scene
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.reference import tracker_reference


def scene_config(size: ModelConfig, rules: bool = False, road: bool = False) -> SceneConfig:
    """How scenes are built for a model: its sizes, its form of the route; `rules` adds what the rules look at, and
    `road` what those of the road look at beside it."""
    return SceneConfig(
        agents=size.agents,
        static_objects=size.static_objects,
        lanes=size.lanes,
        route_lanes=size.route_lanes,
        neighbor_futures=size.agents,
        route_order=size.route_order,
        yellow_is_unknown=size.yellow_is_unknown,
        lane_length=size.lane_length,
        ego_dynamics=True,  # the network does not read them, the rules and the head do
        rules=rules,
        road=road,
    )


def reference_for(plans: torch.Tensor, scene: Scene, look: float | None) -> torch.Tensor | None:
    """What the tracker is to follow for plans (B, H, 4) of B scenes; None: the plans themselves."""
    if look is None:
        return None
    ego = scene.ego_current_state
    return tracker_reference(plans, ego[:, [EgoColumn.VX, EgoColumn.AX, EgoColumn.STEERING]], look)


class DiffusionPlanner:
    """Plans by denoising; `guidance` makes an energy for a scene, `head` adds pressures without touching the plan.

    `weights`: how much each rule counts to a planner that was trained with weights of rules as an input.
    """

    def __init__(
        self,
        model: DiffusionModel,
        name: str = "diffusion",
        steps: int | None = None,
        temperature: float = TEMPERATURE,
        guidance: Callable[[Scene, int], Guidance] | None = None,
        head: AttributionHead | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.model, self.name, self.head = model.eval(), name, head
        self.log_weights = log_weights(model.config, weights or {}, name)
        self.steps, self.temperature, self.guidance = steps or model.config.sampler_steps, temperature, guidance
        self.scenes = scene_config(model.config, rules=head is not None and bool(head.config.geometry))

    def with_weight_input(self, rules: Sequence[str]) -> DiffusionPlanner:
        """The same planner with an input for the weights of these rules; until it is trained, it changes nothing."""
        other = copy(self)
        other.model = conditioned(self.model, rules).eval()
        return other

    def with_weights(self, weights: Mapping[str, float]) -> DiffusionPlanner:
        """The same planner, to which these rules count so many times as much as by default.

        BadInput if the planner was not trained to listen to them.
        """
        other = copy(self)
        other.log_weights = log_weights(self.model.config, weights, self.name)
        return other

    def plan(
        self,
        now: Observation | Scene,
        generator: torch.Generator | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Plan:
        """A plan for each world or scene. In closed loop the noise comes from the observation's own seeds.

        `weights`: how many times as much as by default each rule counts, such as {"comfort": 2.0}.
        """
        if weights is not None:
            return self.with_weights(weights).plan(now, generator)
        if isinstance(now, Observation):
            return self.plan_scene(build_scenes(now, self.scenes), now.seeds)
        return self._plan(now, self.draw(now, generator=generator))

    def plan_scene(self, scene: Scene, seeds: np.ndarray) -> Plan:
        """Plans for B scenes, built as `scenes` says, with the noise of the observation's seeds (B,)."""
        return self._plan(scene, self.draw(scene, noise_of_seeds([int(seed) >> 1 for seed in seeds], self.model)))

    def _plan(self, scene: Scene, drawn: PlanSample) -> Plan:
        joint = drawn.trajectories[:, 0]
        tracks = None if scene.agent_tracks is None else scene.agent_tracks[:, : self.model.config.neighbours]
        reference = reference_for(joint[:, 0], scene, self.model.config.reference_s)
        plan = Plan(joint[:, 0], reference=reference, predictions=joint[:, 1:], predicted_tracks=tracks)
        if self.head is None:
            return plan
        return replace(plan, pressure=self.pressures(drawn, scene), rules=self.head.config.rules)

    def draw(
        self, scene: Scene, noise: torch.Tensor | None = None, generator: torch.Generator | None = None
    ) -> PlanSample:
        """One sample for each scene, with the tokens and the encoding that the head reads."""
        if self.log_weights is not None and scene.rule_weights is None:
            scene = replace(scene, rule_weights=self.log_weights.expand(len(scene), -1))
        guidance = None if self.guidance is None else self.guidance(scene, self.model.config.neighbours)
        return sample_plans(
            self.model, scene, steps=self.steps, temperature=self.temperature, noise=noise, generator=generator,
            guidance=guidance,
        )  # fmt: skip

    @torch.no_grad()
    def pressures(self, drawn: PlanSample, scene: Scene) -> torch.Tensor:
        """(B, M) what the head predicts for plans that were just drawn."""
        if self.head is None:
            raise ValueError(f"planner {self.name!r} has no attribution head")
        return self.head(*head_inputs(drawn, scene, self.head.config.geometry))
