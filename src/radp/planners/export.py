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


def export_planner(
    planner: DiffusionPlanner,
    folder: Path | str,
    about: Mapping[str, Any] | None = None,
    loop: bool = False,
    head: bool = True,
) -> Path:
    """Encoder, step, head (and loop) as ONNX files with manifest.json and golden.npz; adapters are merged already.

    `about` joins what the manifest says of the planner. BadInput for guidance, which needs gradients.
    """
    if planner.guidance is not None:
        raise BadInput(f"{planner.name}: guidance needs gradients, which an exported planner has not")
    scene = build_scenes(observe_logs(list(open_split(EXAMPLE)[:2]), FRAME), planner.scenes)
    said = {"planner": planner.name, "planner_hash": planner_hash(planner.model, planner.head), **(about or {})}
    with_head = planner.head if head else None
    return export_onnx(planner.model, folder, scene, with_head, said, planner.steps, planner.temperature, loop)
