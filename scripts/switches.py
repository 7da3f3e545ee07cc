"""Does each switch of the preset `mini` help? Short trainings that differ in one thing, driven in closed loop.

    python scripts/switches.py --data runs/samples --work runs/switches --page docs/switches.md

Trainings of the same seed and batch see the same samples in the same order. It can be stopped and
repeated: what is there is kept.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import tyro

from radp.evaluation.planners import COLUMNS, Row, compare
from radp.evaluation.settings import Comparison
from radp.model.config import MINI, NUPLAN, ModelConfig
from radp.planners.diffusion import scene_config
from radp.runs.folder import RunFolder
from radp.statistics.estimate import LEGEND, difference, interval
from radp.training.base import train_base
from radp.training.data import open_samples
from radp.training.settings import BaseConfig, LoopConfig

SWITCHES = (
    "target_space", "waypoint_loss_weight", "near_horizon_s", "route_order", "yellow_is_unknown", "lane_length",
    "route_tokens", "mask_padded_tokens", "polyline_encoder", "noise_draws",
)  # fmt: skip
SHOWN = ("score", "no_ego_at_fault_collisions", "drivable_area_compliance", "ego_progress_along_expert_route",
         "ego_is_comfortable")  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """What differs from `mini` and from its training."""

    what: str
    model: dict[str, Any] = field(default_factory=dict)
    loop: dict[str, Any] = field(default_factory=dict)
    augment: float = 0.5


VARIANTS = {
    "mini": Variant("the preset"),
    "another-seed": Variant("nothing but the seed", loop={"seed": 1}),
    "published": Variant("all switches off", {name: getattr(NUPLAN, name) for name in SWITCHES}),
    "waypoint-target": Variant("waypoints instead of steps", {"target_space": "waypoint", "waypoint_loss_weight": 0.0}),
    "no-near-weight": Variant("all of the horizon weighs the same", {"near_horizon_s": None}),
    "route-as-lanes": Variant("route lanes by distance", {"route_order": "lanes"}),
    "no-route-tokens": Variant("the route in AdaLN alone", {"route_tokens": False}),
    "no-masks": Variant("padded tokens are seen", {"mask_padded_tokens": False}),
    "mixer": Variant("mixers for polylines", {"polyline_encoder": "mixer"}),
    "one-draw": Variant("one noise draw for a scene", {"noise_draws": 1}),
    "ego-speed": Variant("the network sees the ego's speed", {"ego_speed": True}),
    "no-augmentation": Variant("starts as logged", augment=0.0),
    "batch-64": Variant("batches of 64, a quarter of the steps", loop={"batch": 64}),
    "constant-rate": Variant("constant learning rate", loop={"schedule": "constant"}),
    "ema-from-start": Variant("EMA without warm-up", loop={"ema_warmup": False}),
    "residual": Variant("residual cross-attention", {"residual_cross_attention": True}),
}


def main(
    data: Path,
    work: Path,
    page: Path,
    variants: tuple[str, ...] = tuple(VARIANTS),
    split: str = "sumo14-val@every-2",
    steps: int = 2_000,
    batch: int = 16,
    warmup: int = 500,
) -> None:
    """Train and drive each variant; the page is written anew after each.

    Args:
        data: Samples made by `radp data samples`.
        work: Folder for trainings and drives.
        page: Markdown file to write.
        variants: Of VARIANTS; the first is what the others are compared with.
        split: Driven, with reactive agents.
        steps: Of each training.
        batch: Samples of a step.
        warmup: Steps of linear warm-up.
    """
    torch.set_num_threads(1)
    rows: list[Row] = []
    loop = LoopConfig(steps=steps, batch=batch, warmup=warmup)
    for name in variants:
        model = train(VARIANTS[name], loop, data, work / "runs" / name, work / "models" / name)
        wanted = Comparison(planners=(str(model),), splits=(split,), agents=("reactive",))
        rows += compare(wanted, work / "drives")
        page.write_text("\n".join(report(rows, work, loop)) + "\n")


def train(variant: Variant, loop: LoopConfig, data: Path, run: Path, target: Path) -> Path:
    """Train one variant, unless it is there, and give its folder the variant's name."""
    if target.exists():
        return target
    own = replace(loop, **variant.loop)
    own = replace(own, steps=own.steps * loop.batch // own.batch, warmup=own.warmup * loop.batch // own.batch)
    model = ModelConfig.from_json(MINI.to_json() | variant.model)
    config = BaseConfig(model=model, loop=own, augment=variant.augment)
    samples = open_samples(data, scene_config(model))
    facts = {"data": data, "samples": len(samples), "start_from": ""}
    folder = RunFolder.create(run, "train base", config, own.seed, {"threads": 1}, facts)
    began = time.process_time()
    trained = train_base(config, folder, samples)
    minutes = (time.process_time() - began) / 60  # of the last part, if it was stopped
    (run / "minutes.json").write_text(json.dumps(minutes))
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(trained, target)
    return target


def report(rows: Sequence[Row], work: Path, loop: LoopConfig) -> list[str]:
    """A table of scores and of paired differences to the first row."""
    head = ["variant", "what differs", "minutes", *(COLUMNS[name] for name in SHOWN), "paired difference of scores"]
    lines = ["# The switches of `mini`, one by one", "", "Written by `scripts/switches.py`.", ""]
    lines += [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        minutes = json.loads((work / "runs" / row.planner / "minutes.json").read_text())
        values = [
            interval(row.estimate("score"), 1, 100),
            *(f"{100 * row.estimate(name).value:.1f}" for name in SHOWN[1:]),
        ]
        change = "" if row is rows[0] else difference(row.difference(rows[0], "score"), 1, 100)
        cells = (row.planner, VARIANTS[row.planner].what, f"{minutes:.1f}", *values, change)
        lines.append(f"| {' | '.join(cells)} |")
    recipe = f"{loop.steps:,} steps, batch {loop.batch}, rate {loop.lr:g}, {loop.warmup} steps of warm-up, one seed."
    drives = f"{len(rows[0].values['score'])} reactive drives of {rows[0].split}"
    return [*lines, "", f"Each: {recipe}  ", f"x100, 95 % intervals over {drives}; minutes of one core.  ", LEGEND]


if __name__ == "__main__":
    tyro.cli(main)
