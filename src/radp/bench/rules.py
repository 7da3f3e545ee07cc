"""How fast the rules are: all costs, and all gradients, on synthetic crossings."""

from __future__ import annotations

from typing import Any

import torch

from radp.rules.context import RuleContext
from radp.rules.costs import rule_costs, rule_gradients
from radp.rules.rule import default_rules
from radp.runs.timing import Taken, alternate, load_average, torch_threads
from radp.scene.builder import SceneConfig, build_scenes
from radp.scene.scene import Scene
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario

BATCHES = (1, 64)
AGENTS = 40


def bench_rules(threads: int = 1, repeats: int = 15, seed: int = 0) -> dict[str, Any]:
    """Milliseconds per plan of six costs and of six costs with their six gradients, at batch 1 and 64.

    `gradients_over_forward`: the gradients alone as a multiple of one forward pass of all rules, at batch 64; both are
    timed in turn, so that what else the machine does meets both alike, and measured in processor time.
    """
    with torch_threads(threads):
        taken = {batch: _measure(batch, repeats, seed) for batch in BATCHES}
    forward, both, _ = taken[max(BATCHES)]
    return {
        "rules": len(default_rules()),
        "threads": threads,
        **{f"batch_{batch}": _per_plan(batch, *times) for batch, times in taken.items()},
        "gradients_over_forward": (both.cpu - forward.cpu) / forward.cpu,
        "load_average": load_average(),
    }


def _measure(batch: int, repeats: int, seed: int) -> list[Taken]:
    """Costs; costs and gradients; the context that both need."""
    scene, plan = example(batch, seed)
    context = RuleContext.from_scene(scene)
    return alternate(
        lambda: _forward(plan, context),
        lambda: rule_gradients(plan, context),
        lambda: RuleContext.from_scene(scene),
        repeats=repeats,
    )


def _per_plan(batch: int, forward: Taken, both: Taken, prepare: Taken) -> dict[str, float]:
    return {
        "costs_ms": 1e3 * forward.median / batch,
        "costs_and_gradients_ms": 1e3 * both.median / batch,
        "context_ms": 1e3 * prepare.median / batch,
        "costs_cpu_ms": 1e3 * forward.cpu / batch,
        "costs_and_gradients_cpu_ms": 1e3 * both.cpu / batch,
        "context_cpu_ms": 1e3 * prepare.cpu / batch,
    }


def example(batch: int, seed: int = 0) -> tuple[Scene, torch.Tensor]:
    """Scenes of crossings with 40 vehicles, and plans (B, 80, 4) that go on as fast as the ego is, slightly bent."""
    scenarios = [make_scenario(seed + i, agents=AGENTS) for i in range(batch)]
    scene = build_scenes(observe_logs(scenarios, 40), SceneConfig(route_order="lanes", ego_dynamics=True))
    speed = scene.ego_current_state[:, 4:6].norm(dim=-1, keepdim=True)
    way = speed * 0.1 * torch.arange(1, 81)
    heading = 0.002 * way
    return scene, torch.stack((way, 0.001 * way.square(), heading.cos(), heading.sin()), -1)


@torch.no_grad()
def _forward(plan: torch.Tensor, context: RuleContext) -> torch.Tensor:
    return rule_costs(plan, context)
