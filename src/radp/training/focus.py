"""Samples worth a second look: where the planner's own plan would touch somebody soon and the logged way does not.

Such moments are a few in a hundred, and the collision rule has little to say about the rest.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from radp.geometry.frames import pose_frame
from radp.planners.diffusion import DiffusionPlanner
from radp.rules import RuleContext
from radp.rules.collision import Collision
from radp.runs.errors import BadInput, reading_file
from radp.runs.files import write_json_atomically
from radp.runs.progress import Progress
from radp.scene.samples import Samples
from radp.sim.plan import STEP_SECONDS
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

    def save(self, path: Path | str) -> None:
        write_json_atomically(Path(path), {"format": FORMAT, **asdict(self)})

    def rows_in(self, samples: Samples) -> list[int]:
        """The rows, if these are the samples that they were chosen from."""
        if len(samples) != self.of:
            raise BadInput(f"the list was made from {self.of} samples, this folder has {len(samples)}")
        return self.rows

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


def first_contact(plan: Tensor, context: RuleContext) -> Tensor:
    """(B, H, 4) -> (B,) seconds to the first overlap with another road user, inf where there is none."""
    touches = Collision().violation(plan, context) > 0
    seconds = STEP_SECONDS * (1 + torch.arange(touches.shape[1]))
    return torch.where(touches, seconds, torch.inf).amin(-1)


@torch.no_grad()
def find_focus(planner: DiffusionPlanner, samples: Samples, wanted: FocusSearch, batch: int = 64) -> Focus:
    """Plan some of the samples, and keep those with contact in the plan but not in the log."""
    rows = np.sort(np.random.default_rng([wanted.seed, 13]).permutation(len(samples))[: wanted.samples])
    generator = torch.Generator().manual_seed(wanted.seed)
    kept: list[int] = []
    with Progress("samples planned", len(rows)) as progress:
        for chosen in np.split(rows, range(batch, len(rows), batch)):
            scene = samples.read(chosen)
            if scene.ego_agent_future is None:
                raise BadInput("these samples have no futures to compare with")
            context = RuleContext.from_scene(scene, logged=True)
            future = scene.ego_agent_future
            logged = pose_frame(future)
            planned = first_contact(planner.plan(scene, generator).trajectory, context)
            risky = (planned <= wanted.within) & first_contact(logged, context).isinf()
            kept += chosen[risky.numpy()].tolist()
            progress.advance(len(chosen))
    return Focus(kept, len(rows), len(samples), planner.name, wanted.within, wanted.seed)
