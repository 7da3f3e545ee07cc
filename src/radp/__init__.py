"""radp: rule-aligned diffusion planning for autonomous driving.

The public face, kept stable; everything else may move:

    planner   = radp.load_planner("pdm_closed")          # packaged name, folder, or a Diffusion Planner .pth
    scenarios = radp.open_split("sumo14-val")            # packaged split, store folder, neutral JSON
    rollouts  = radp.simulate(planner, scenarios, agents="reactive")
    scores    = radp.score(rollouts)
    why       = radp.attribute(trajectory, scene)        # exact teacher, any planner's trajectory
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from radp.version import __version__

if TYPE_CHECKING:
    from radp.attribution.teacher import attribute as attribute
    from radp.metrics.score import evaluate_many as score
    from radp.planners.registry import load_planner as load_planner
    from radp.scenario.splits import open_split as open_split
    from radp.sim.simulate import simulate as simulate

# Imported on first use: `import radp` stays fast.
_FACE = {
    "attribute": "radp.attribution.teacher:attribute",
    "load_planner": "radp.planners.registry:load_planner",
    "open_split": "radp.scenario.splits:open_split",
    "score": "radp.metrics.score:evaluate_many",
    "simulate": "radp.sim.simulate:simulate",
}

__all__ = ["__version__", "attribute", "load_planner", "open_split", "score", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in _FACE:
        raise AttributeError(f"module 'radp' has no attribute {name!r}")
    module, attribute = _FACE[name].split(":")
    return getattr(import_module(module), attribute)
