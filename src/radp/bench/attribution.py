"""What knowing the pressures costs: planner alone, with the head, with the exact teacher, with gradient guidance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import torch

from radp.attribution.online import ExplainedPlanner
from radp.attribution.teacher import attribute
from radp.model.config import ModelConfig
from radp.model.geometry import plan_geometry
from radp.model.head import AttributionHead, HeadConfig, HeadInputs, head_inputs
from radp.model.network import build_model
from radp.model.sampler import noise_of_seeds
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.guidance import CollisionGuidance
from radp.planners.learned import load_learned
from radp.rules import RuleContext, default_rules, rule_costs, rule_set
from radp.runs.timing import Taken, alternate, load_average, torch_threads
from radp.scenario import Scenario
from radp.scenario.splits import open_split
from radp.scene.builder import build_scenes
from radp.sim.observation import Observation
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from radp.zoo import list_models, list_splits

SPLIT, SCENARIOS, STATES, BATCH = "sumo14-val", 5, 500, 25
FAVOURITES = ("radp-mini", "diffusion-planner-mini")
FULL_SIZE = "nuplan"


def bench_attribution(
    planner: str | None = None, threads: int = 1, rounds: int = 4, states: int = STATES
) -> dict[str, Any]:
    """The paper's latency table at batch 1. Without a planner: the packaged one, and full size with random weights."""
    with torch_threads(threads):
        if planner is not None:
            return {**_table(load_learned(planner), rounds, states), **_conditions(threads)}
        name = next((name for name in FAVOURITES if name in list_models()), None)
        full = DiffusionPlanner(build_model(FULL_SIZE, seed=0), f"{FULL_SIZE}, random weights")
        large = _table(full, rounds, states)
        if name is None:
            return {**large, **_conditions(threads)}
        return {**_table(load_learned(name), rounds, states), "full_size": large, **_conditions(threads)}


def _conditions(threads: int) -> dict[str, Any]:
    return {"threads": threads, "load_average": load_average()}


def _table(planner: DiffusionPlanner, rounds: int, states: int) -> dict[str, Any]:
    head, about = planner.head, "the planner's own"
    if head is None:
        head, about = random_head(planner.model.config), "random weights of the right size: the planner has none"
    seeing = random_head(planner.model.config, geometry="cheap")
    plain, with_head, guided, sees = (
        DiffusionPlanner(planner.model, planner.name, guidance=guidance, head=chosen)
        for guidance, chosen in ((None, None), (None, head), (CollisionGuidance.of_scene, None), (None, seeing))
    )
    taught = ExplainedPlanner(plain)
    drivers = (plain, with_head, taught, guided, sees)
    moments = [observe_logs([scenario], 40) for scenario in _scenarios(SCENARIOS)]
    taken = [alternate(*(lambda d=d, m=m: d.plan(m) for d in drivers), repeats=rounds) for m in moments]
    teacher, online = _cached(plain, head, states)
    return {
        "planner": planner.name,
        "head": about,
        "planner_ms": 1e3 * fmean(_wall(taken, 0)),
        "planner_ms_deviation": 1e3 * stdev(_wall(taken, 0)),
        **_overhead("head", taken, 1),
        **_overhead("teacher", taken, 2),
        **_overhead("guidance", taken, 3),
        **_overhead("cheap_geometry_head", taken, 4),
        "teacher_cached_ms": 1e3 * teacher.mean,
        "teacher_cached_ms_deviation": 1e3 * teacher.deviation,
        "head_cached_ms": 1e3 * online.mean,
        "head_cached_ms_deviation": 1e3 * online.deviation,
        "cached_states": states,
        "head_share_cpu": fmean(_head_share(with_head, plain, now) for now in moments),
        "cheap_geometry_head_share_cpu": fmean(_head_share(sees, plain, now) for now in moments),
        "teacher_parts_cpu_ms": _parts(plain, moments[0]),
    }


def _head_share(planner: DiffusionPlanner, plain: DiffusionPlanner, now: Observation) -> float:
    """Processor time of all that a head adds, as a share of a plan: its inputs, itself, and a scene with what its
    geometry looks at. Each is measured alone, since differences of whole plans hide a few percent in noise."""
    scene = build_scenes(now, planner.scenes)
    drawn = planner.draw(scene, noise_of_seeds([0], planner.model))
    calls = (
        lambda: plain.plan(now),
        lambda: planner.pressures(drawn, scene),
        lambda: build_scenes(now, plain.scenes),
        lambda: build_scenes(now, planner.scenes),
    )
    plan, head, bare, whole = (taken.cpu for taken in alternate(*calls, repeats=8))
    return (head + max(0.0, whole - bare)) / plan


def _wall(taken: Sequence[Sequence[Taken]], driver: int) -> list[float]:
    return [seconds for moment in taken for seconds in moment[driver].wall]


def _overhead(name: str, taken: Sequence[Sequence[Taken]], driver: int) -> dict[str, float]:
    """Extra time as a share of a plan: medians of the pairs over moments, their deviation, and in processor time."""
    wall = [(moment[driver].median - moment[0].median) / moment[0].median for moment in taken]
    cpu = [(moment[driver].cpu - moment[0].cpu) / moment[0].cpu for moment in taken]
    return {
        f"{name}_overhead": fmean(wall),
        f"{name}_overhead_deviation": stdev(wall),
        f"{name}_overhead_cpu": fmean(cpu),
    }


def _cached(planner: DiffusionPlanner, head: AttributionHead, states: int) -> tuple[Taken, Taken]:
    """Teacher and head, one state after the other, on plans that were made before."""
    kept = _states(planner, states, head.config.geometry)
    turn = {"teacher": 0, "head": 0}

    def teach() -> None:
        plan, context, _ = kept[turn["teacher"] % states]
        turn["teacher"] += 1
        attribute(plan, context)

    @torch.no_grad()
    def predict() -> None:
        inputs = kept[turn["head"] % states][2]
        turn["head"] += 1
        head(*inputs)

    teacher, online = alternate(teach, predict, repeats=states)
    return teacher, online


def _states(
    planner: DiffusionPlanner, count: int, geometry: str = ""
) -> list[tuple[torch.Tensor, RuleContext, HeadInputs]]:
    """Plan (1, H, 4), context and head's inputs of `count` moments, planned in batches."""
    scenarios, kept = _scenarios(BATCH), []
    for step in range(0, 3 * -(-count // BATCH), 3):
        now = observe_logs(scenarios, step)
        scene = build_scenes(now, replace(planner.scenes, rules=True))
        drawn = planner.draw(scene, noise_of_seeds([int(seed) for seed in now.seeds], planner.model))
        joint = drawn.trajectories[:, 0]
        inputs = head_inputs(drawn, scene, geometry)
        for b in range(len(scenarios)):
            context = RuleContext.from_scene(scene[b : b + 1], joint[b : b + 1, 1:])
            one = HeadInputs._make(None if part is None else part[b : b + 1] for part in inputs)
            kept.append((joint[b : b + 1, 0], context, one))
    return kept[:count]


def _parts(planner: DiffusionPlanner, now: Observation) -> dict[str, float]:
    """Where the teacher's time goes at batch 1."""
    plan, with_rules = planner.plan(now), replace(planner.scenes, rules=True)
    scene = build_scenes(now, with_rules)
    context = RuleContext.from_scene(scene, plan.predictions)
    calls = {
        "scene": lambda: build_scenes(now, planner.scenes),
        "scene_and_rules": lambda: build_scenes(now, with_rules),
        "context": lambda: RuleContext.from_scene(scene, plan.predictions),
        "route_match": lambda: context.bind(plan.trajectory),
        "match_and_costs": lambda: rule_costs(plan.trajectory, context),
        "all_of_attribute": lambda: attribute(plan.trajectory, context),
        "all_of_attribute_v2": lambda: attribute(plan.trajectory, context, rules=rule_set("v2")),
        "cheap_geometry": lambda: plan_geometry("cheap", plan.trajectory, scene, plan.predictions),
        "full_geometry": lambda: plan_geometry("full", plan.trajectory, scene, plan.predictions),
    }
    return {name: 1e3 * taken.cpu for name, taken in zip(calls, alternate(*calls.values(), repeats=10))}


def random_head(config: ModelConfig, seed: int = 0, geometry: str = "") -> AttributionHead:
    """A head of the right size for a model."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        rules = tuple(rule.name for rule in default_rules())
        return AttributionHead(HeadConfig(config.hidden, rules, geometry=geometry)).eval()


def _scenarios(count: int) -> list[Scenario]:
    """Spread evenly over a packaged split; synthetic ones where it is not packaged."""
    if SPLIT not in list_splits():
        return [make_scenario(seed) for seed in range(count)]
    split = open_split(SPLIT)
    return [split[i * len(split) // count] for i in range(count)]
