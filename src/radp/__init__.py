"""radp: rule-aligned diffusion planning for autonomous driving.

The public face, kept stable; everything else may move:

    planner   = radp.load_planner("pdm_closed")          # packaged name, folder, or a Diffusion Planner .pth
    scenarios = radp.open_split("sumo14-val")            # packaged split, store folder, neutral JSON
    rollouts  = radp.simulate(planner, scenarios, agents="reactive")
    scores    = radp.score(rollouts)
    print(radp.summary(scores))                          # means with intervals
    print(radp.explain(rollout))                         # what went wrong, why, what would have avoided it
    radp.view(rollouts, "pages")                         # pages to look at

    now       = radp.observe(scenarios[:4], step=20)     # what planners see
    plan      = planner.plan(now)
    why       = radp.attribute(plan, now)                # exact teacher, any planner's plan
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from radp.version import __version__

if TYPE_CHECKING:
    from radp.attribution.teacher import Attribution as Attribution
    from radp.attribution.teacher import attribute as attribute
    from radp.evaluation.rulebook import compare_drives as compare_drives
    from radp.incidents.explain import explain as explain
    from radp.incidents.incident import Explained as Explained
    from radp.metrics.score import evaluate_many as score
    from radp.metrics.summary import summary as summary
    from radp.planners.registry import load_planner as load_planner
    from radp.report.viewer.look import view as view
    from radp.rules.context import RuleContext as RuleContext
    from radp.rules.rule import Rule as Rule
    from radp.rules.rule import register_rule as register_rule
    from radp.scenario.scenario import Box as Box
    from radp.scenario.scenario import Ego as Ego
    from radp.scenario.scenario import Scenario as Scenario
    from radp.scenario.splits import open_split as open_split
    from radp.scene.builder import build_scenes as build_scenes
    from radp.scene.scene import Scene as Scene
    from radp.sim.observation import Observation as Observation
    from radp.sim.one_world import OneWorld as OneWorld
    from radp.sim.one_world import OneWorldPlanner as OneWorldPlanner
    from radp.sim.plan import Plan as Plan
    from radp.sim.replay import observe_logs as observe
    from radp.sim.rollout import Rollout as Rollout
    from radp.sim.simulate import simulate as simulate

# Imported on first use: `import radp` stays fast.
_FACE = {
    "Attribution": "radp.attribution.teacher",
    "Box": "radp.scenario.scenario",
    "Ego": "radp.scenario.scenario",
    "Explained": "radp.incidents.incident",
    "Observation": "radp.sim.observation",
    "OneWorld": "radp.sim.one_world",
    "OneWorldPlanner": "radp.sim.one_world",
    "Plan": "radp.sim.plan",
    "Rollout": "radp.sim.rollout",
    "Rule": "radp.rules.rule",
    "RuleContext": "radp.rules.context",
    "Scenario": "radp.scenario.scenario",
    "Scene": "radp.scene.scene",
    "attribute": "radp.attribution.teacher",
    "build_scenes": "radp.scene.builder",
    "compare_drives": "radp.evaluation.rulebook",
    "explain": "radp.incidents.explain",
    "load_planner": "radp.planners.registry",
    "observe": "radp.sim.replay:observe_logs",
    "open_split": "radp.scenario.splits",
    "register_rule": "radp.rules.rule",
    "score": "radp.metrics.score:evaluate_many",
    "simulate": "radp.sim.simulate",
    "summary": "radp.metrics.summary",
    "view": "radp.report.viewer.look",
}

__all__ = [
    "Attribution",
    "Box",
    "Ego",
    "Explained",
    "Observation",
    "OneWorld",
    "OneWorldPlanner",
    "Plan",
    "Rollout",
    "Rule",
    "RuleContext",
    "Scenario",
    "Scene",
    "__version__",
    "attribute",
    "build_scenes",
    "compare_drives",
    "explain",
    "load_planner",
    "observe",
    "open_split",
    "register_rule",
    "score",
    "simulate",
    "summary",
    "view",
]


def __getattr__(name: str) -> Any:
    if name not in _FACE:
        raise AttributeError(f"module 'radp' has no attribute {name!r}")
    module, _, own_name = _FACE[name].partition(":")
    found = globals()[name] = getattr(import_module(module), own_name or name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
