"""Samples worth a second look: where the planner's own plan would touch somebody soon, or leave the road; or where
another planner, aligned from it, waits without need.

Such moments are a few in a hundred, and the rules have little to say about the rest. In logs, the logged way must not
touch anybody; on states of the planner's own drives, what was executed may be the very collision to learn from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from radp.geometry.frames import pose_frame
from radp.model.loss import continued
from radp.planners.diffusion import DiffusionPlanner
from radp.rules import RuleContext
from radp.rules.contact import avoidable, first_contact, first_near_miss, first_off_road, time_to_stop
from radp.rules.motion import way_length, with_origin
from radp.runs.errors import BadInput, reading_file
from radp.runs.files import write_json_atomically
from radp.runs.progress import Progress
from radp.scenario import DT
from radp.scene.samples import Samples
from radp.scene.scene import XY, Scene
from radp.training.copies import copies_of, least_change
from radp.training.data import Mixture
from radp.training.settings import FocusSearch

FORMAT = "radp-focus"


@dataclass(frozen=True)
class Focus:
    """Rows of a sample folder, and where they come from."""

    rows: list[int]
    looked_at: int  # samples
    of: int  # samples in the folder: the rows mean nothing in another one
    planner: str
    within: float  # s
    seed: int
    margin: float = 0.0  # m
    corners: bool = False
    near_misses: bool = False
    urgent: bool = False
    own: bool = False
    contexts: str = "executed"
    mendable: bool = False
    driven: float = 0.0  # m
    encounters: int = 0
    slower: str = ""  # name of the planner that falls behind
    lag: float = 0.0  # m

    def save(self, path: Path | str) -> None:
        write_json_atomically(Path(path), {"format": FORMAT, **asdict(self)})

    def rows_in(self, samples: Samples) -> list[int]:
        """The rows, if these are the samples that they were chosen from."""
        if len(samples) != self.of:
            raise BadInput(f"the list was made from {self.of} samples, this folder has {len(samples)}")
        return self.rows

    def others(self) -> list[int]:
        """Rows that were looked at and not kept, in order."""
        return sorted(set(looked_at(self.of, self.looked_at, self.seed).tolist()) - set(self.rows))

    @classmethod
    def load(cls, path: Path | str) -> Focus:
        with reading_file(path, "list of samples made by radp train focus"):
            stored = json.loads(Path(path).read_bytes())
            if stored.pop("format") != FORMAT:
                raise ValueError("another format")
            found = cls(**stored)
            if any(not isinstance(row, int) or not 0 <= row < found.of for row in found.rows):
                raise ValueError(f"rows must be whole numbers from 0 to {found.of - 1}")
            return found


def focus_rows(paths: Sequence[Path], samples: Samples | Mixture, driven: bool = False) -> list[int]:
    """Rows of one list of all samples, or of one list for each of their folders in the same order; `driven`: only
    those of lists made with --driven.
    """
    lists = [Focus.load(path) for path in paths]
    if len(lists) < 2:
        return [row for each in lists for row in each.rows_in(samples) if each.driven or not driven]
    parts = samples.sources if isinstance(samples, Mixture) else (samples,)
    if len(parts) != len(lists):
        raise BadInput(f"{len(lists)} lists for {len(parts)} folders of samples; expected one for each, or one for all")
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    each = [(one, one.rows_in(part), start) for one, part, start in zip(lists, parts, starts)]
    return [start + row for one, rows, start in each for row in rows if one.driven or not driven]


def looked_at(count: int, wanted: int, seed: int) -> np.ndarray:
    """Rows (n,) of `count` samples that a search for `wanted` of them looks at, in order."""
    return np.sort(np.random.default_rng([seed, 13]).permutation(count)[:wanted])


def worth_a_look(plan: Tensor, scene: Scene, wanted: FocusSearch) -> Tensor:
    """Plans (B, H, 4) of a scene with futures -> (B,) bool."""
    if scene.ego_agent_future is None:
        raise BadInput("these samples have no futures to compare with")
    if wanted.driven:
        return went_otherwise(plan, scene, wanted)
    logged = RuleContext.from_scene(scene, logged=True)
    context = logged if wanted.contexts == "executed" else RuleContext.from_scene(scene, horizon=plan.shape[1])
    if wanted.own:
        context = avoidable(context)
    within = torch.full_like(context.speed_now, wanted.within)
    if wanted.urgent:
        within = torch.minimum(within, time_to_stop(context))
    risky = first_contact(plan, context, wanted.margin) <= within
    if wanted.near_misses:
        risky |= first_near_miss(plan, context) <= within
    if wanted.corners:
        risky |= first_off_road(plan, context) <= wanted.within
    if not wanted.own:
        risky &= first_contact(pose_frame(scene.ego_agent_future), logged).isinf()
    if wanted.mendable and bool(risky.any()):
        own = plan[risky]
        choice = least_change(own, copies_of(own), [context.rows(risky.nonzero().squeeze(1))], wanted.urgent)
        risky[risky.clone()] = choice >= 0
    return risky


def went_otherwise(plan: Tensor, scene: Scene, wanted: FocusSearch) -> Tensor:
    """Plans (B, H, 4) of a scene with futures -> (B,) bool: within `wanted.within` its drive went further or less far.

    Where the log ends earlier, only so far is compared.
    """
    assert scene.ego_agent_future is not None
    future, known = continued(scene.ego_agent_future[:, : plan.shape[1]])
    ways = [
        torch.diff(with_origin(poses)[..., XY], dim=1).norm(dim=-1).cumsum(1) for poses in (plan, pose_frame(future))
    ]
    last = known.sum(1).clamp(max=round(wanted.within / DT)) - 1
    planned, went = (way.gather(1, last.unsqueeze(1)).squeeze(1) for way in ways)
    return (planned - went).abs() > wanted.driven


def falls_behind(plan: Tensor, other: Tensor, wanted: FocusSearch) -> Tensor:
    """Plans (B, H, 4) of two planners -> (B,) bool: within `wanted.within` the other drives so much less far."""
    steps = min(plan.shape[1], round(wanted.within / DT))
    return way_length(plan[:, :steps]) - way_length(other[:, :steps]) > wanted.lag


@torch.no_grad()
def find_focus(
    planner: DiffusionPlanner,
    samples: Samples,
    wanted: FocusSearch,
    batch: int = 64,
    slower: DiffusionPlanner | None = None,
) -> Focus:
    """Plan some of the samples, and keep those that are worth a second look.

    With `slower`, also those on which it falls behind the planner at the same noise; then a state that is worth it by
    itself may be listed several times.
    """
    rows = looked_at(len(samples), wanted.samples, wanted.seed)
    generator = torch.Generator().manual_seed(wanted.seed)
    risky: list[int] = []
    behind: list[int] = []
    with Progress("samples planned", len(rows)) as progress:
        for chosen in np.split(rows, range(batch, len(rows), batch)):
            scene = samples.read(chosen)
            noise = generator.clone_state()
            plan = planner.plan(scene, generator).trajectory
            counts = worth_a_look(plan, scene, wanted)
            risky += chosen[counts.numpy()].tolist()
            if slower is not None:
                waits = falls_behind(plan, slower.plan(scene, noise).trajectory, wanted) & ~counts
                behind += chosen[waits.numpy()].tolist()
            progress.advance(len(chosen))
    kept = (
        "driven",
        "within",
        "seed",
        "margin",
        "corners",
        "near_misses",
        "urgent",
        "own",
        "contexts",
        "mendable",
        "encounters",
    )
    how = {name: getattr(wanted, name) for name in kept}
    if slower is not None:
        how |= {"slower": slower.name, "lag": wanted.lag}
    return Focus(sorted(risky * wanted.repeat + behind), len(rows), len(samples), planner.name, **how)
