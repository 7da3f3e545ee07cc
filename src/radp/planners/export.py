"""A learned planner as ONNX files: what `radp export onnx` and the backends share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from radp.model.onnx_export import export_onnx
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.identity import planner_hash
from radp.runs.errors import BadInput
from radp.scenario.splits import open_split
from radp.scene.builder import build_scenes
from radp.sim.replay import observe_logs

EXAMPLE, FRAME = "sumo14-val", 20  # whose first scenes the golden pair is made of, and when


def export_obstacle(planner: DiffusionPlanner) -> str:
    """Why a planner cannot be exported, apart from its head; nothing if it can."""
    if planner.guidance is not None:
        return "guidance needs gradients"
    return "it is given weights of rules" if planner.log_weights is not None else ""


def export_planner(
    planner: DiffusionPlanner,
    folder: Path | str,
    about: Mapping[str, Any] | None = None,
    loop: bool = False,
    head: bool = True,
) -> Path:
    """Encoder, step, head (and loop) as ONNX files with manifest.json and golden.npz; adapters are merged already.

    `about` joins what the manifest says of the planner. A planner that takes weights of rules goes by the default ones.
    BadInput for what a graph cannot do.
    """
    if why_not := export_obstacle(planner):
        raise BadInput(f"planner {planner.name!r} cannot be exported: {why_not}")
    scene = build_scenes(observe_logs(list(open_split(EXAMPLE)[:2]), FRAME), planner.scenes)
    said = {"planner": planner.name, "planner_hash": planner_hash(planner.model, planner.head), **(about or {})}
    with_head = planner.head if head else None
    return export_onnx(planner.model, folder, scene, with_head, said, planner.steps, planner.temperature, loop)
