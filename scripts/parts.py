"""What does each part of learning in the loop contribute? Equal trainings that lack one, driven in closed loop.

    python scripts/parts.py --logs runs/s-logs --driven runs/s-driven --taken-over runs/s-taken-over \\
        --work runs/parts --page docs/parts.md

All start from diffusion-planner-mini-v1, which learnt from logs alone. It can be stopped and repeated: what is there is
kept.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

from radp.cli.train import TrainBase, Training
from radp.evaluation.planners import COLUMNS, Row, compare, over_seeds
from radp.evaluation.settings import Comparison
from radp.statistics.estimate import LEGEND, difference, interval
from radp.training.settings import BaseRecipe, LoopConfig

START = Path("diffusion-planner-mini-v1")
SPEED = ("ego_speed=true", "speed_dropout=0.3")
ALL = ("seam_s=0.6", "reference_s=0.6", "sampler_steps=5", *SPEED)
SHOWN = ("score", "no_ego_at_fault_collisions", "time_to_collision_within_bound", "drivable_area_compliance",
         "ego_progress_along_expert_route", "ego_is_comfortable")  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """What is in every batch, in shares of logs, expert drives and takeovers; and what the model can do."""

    what: str
    shares: tuple[float, float, float] = (0.2, 0.5, 0.3)
    switches: tuple[str, ...] = ALL
    seeds: tuple[int, ...] = (0,)
    weights_of: str = ""  # a variant that is trained alike, so not again


VARIANTS = {
    "all": Variant("all parts", seeds=(0, 1, 2)),
    "no-takeovers": Variant("no takeovers", (0.3, 0.7, 0.0), seeds=(0, 1, 2)),
    "no-drives": Variant("no drives of the expert", (0.6, 0.0, 0.4), seeds=(0, 1, 2)),
    "logs": Variant("neither: logs alone", (1.0, 0.0, 0.0)),
    "no-speed": Variant("the network does not see its speed", switches=tuple(s for s in ALL if s not in SPEED)),
    "no-seam": Variant("plans start at any speed", switches=("seam_s=null", *ALL[1:]), weights_of="all"),
    "no-reference": Variant(
        "the tracker gets the plan itself", switches=(ALL[0], "reference_s=null", *ALL[2:]), weights_of="all"
    ),
}


def main(
    logs: Path,
    driven: Path,
    taken_over: Path,
    work: Path,
    page: Path,
    variants: tuple[str, ...] = tuple(VARIANTS),
    split: str = "sumo14-dev@every-2",
    steps: int = 4_000,
    decay: int = 1_500,
) -> None:
    """Train and drive each variant; the page is written anew after each.

    Args:
        logs: Samples of logs.
        driven: Samples of an expert's drives.
        taken_over: Samples of an expert's drives after the start model's own.
        work: Folder for trainings and drives.
        page: Markdown file to write.
        variants: Of VARIANTS; the first is what the others are compared with.
        split: Driven, with reactive agents.
        steps: Of each training.
        decay: Last steps, in which the rate falls to zero.
    """
    loop = LoopConfig(
        steps=steps, batch=16, lr=5e-4, warmup=100, schedule="constant", decay=decay, validate_every=100_000
    )
    seeds: dict[str, list[Row]] = {}
    wanted = [(seed, name) for name in variants for seed in VARIANTS[name].seeds]
    for seed, name in sorted(wanted, key=lambda each: each[0]):  # a first table is there after the first seed
        model = train(name, seed, (logs, driven, taken_over), loop, work)
        drives = Comparison(planners=(str(model),), splits=(split,), agents=("reactive",))
        seeds.setdefault(name, []).extend(compare(drives, work / "drives"))
        page.write_text("\n".join(report(seeds, loop)) + "\n")


def train(name: str, seed: int, data: Sequence[Path], loop: LoopConfig, work: Path) -> Path:
    """Train one variant with one seed, unless it is there, and give its folder that name."""
    variant, target = VARIANTS[name], work / "models" / f"{name}-{seed}"
    if target.exists():
        return target
    if variant.weights_of:
        return switched(work / "models" / f"{variant.weights_of}-{seed}", variant.switches, target)
    used = [(path, share) for path, share in zip(data, variant.shares) if share]
    verb = TrainBase(
        data=tuple(path for path, _ in used),
        shares=tuple(share for _, share in used) if len(used) > 1 else (),
        out=work / "runs" / f"{name}-{seed}",
        switches=variant.switches,
        start_from=START,
        config=BaseRecipe(loop=replace(loop, seed=seed), way_back="own"),
        training=Training(threads=1),
    )
    verb()
    return Path(shutil.copytree(work / "runs" / f"{name}-{seed}" / "model", target))


def switched(model: Path, switches: Sequence[str], target: Path) -> Path:
    """The same weights with other switches that no weight depends on."""
    shutil.copytree(model, target)
    config = json.loads((target / "config.json").read_text())
    config["model"] |= {name: json.loads(value) for name, value in (each.split("=") for each in switches)}
    (target / "config.json").write_text(json.dumps(config, indent=1))
    return target


def report(seeds: dict[str, list[Row]], loop: LoopConfig) -> list[str]:
    """Means over seeds, and paired differences of scores and collisions to the first variant at the same seeds."""
    head = [
        "variant",
        "seeds",
        *(COLUMNS[name] for name in SHOWN),
        "score, paired",
        "collision, paired",
        "scores of the seeds",
    ]
    lines = ["# What the parts of learning in the loop contribute", "", "Written by `scripts/parts.py`.", ""]
    lines += [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    first = next(iter(seeds.values()))
    for name, rows in seeds.items():
        row, base = over_seeds(rows), over_seeds(first[: len(rows)])
        values = [
            interval(row.estimate("score"), 1, 100),
            *(f"{100 * row.estimate(metric).value:.1f}" for metric in SHOWN[1:]),
        ]
        changes = (
            ["", ""] if rows is first else [difference(row.difference(base, metric), 1, 100) for metric in SHOWN[:2]]
        )
        each = ", ".join(f"{100 * one.estimate('score').value:.1f}" for one in rows)
        lines.append(f"| {VARIANTS[name].what} | {len(rows)} | {' | '.join((*values, *changes, each))} |")
    drives = f"{len(first[0].values['score'])} reactive drives of {first[0].split}"
    recipe = f"{loop.steps:,} steps of batches of {loop.batch} from `{START}`, rate {loop.lr:g}"
    recipe += f", in the last {loop.decay:,} steps to zero"
    return [
        *lines,
        "",
        f"Each: {recipe}.  ",
        f"x100, 95 % intervals over {drives}, seeds averaged inside each.  ",
        LEGEND,
    ]


if __name__ == "__main__":
    tyro.cli(main)
