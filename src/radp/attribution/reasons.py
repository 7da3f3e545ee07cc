"""From an attribution to what a person asks: which rule, how strongly, from when on, because of whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from radp.attribution.calibration import Calibration
from radp.attribution.teacher import Attribution
from radp.rules import Rule, RuleContext
from radp.sim.plan import STEP_SECONDS

_ARRAYS = ("pressure", "level", "begins", "peak", "margin", "worst", "seam", "track", "share")
BEGINS = 0.5  # of the strongest step: where a rule begins to press


@dataclass(frozen=True)
class Reasons:
    """B plans, M rules, numpy. Seconds count from the moment of the plan."""

    rules: tuple[str, ...]
    units: tuple[str, ...]  # of the margins
    calibrated: tuple[bool, ...]  # (M,) whether the usual level of the rule is known
    pressure: np.ndarray  # (B, M)
    level: np.ndarray  # (B, M) gradient as a multiple of the usual one; NaN where that is not known
    begins: np.ndarray  # (B, M) s, first step with half of the strongest step's pressure; NaN where nothing presses
    peak: np.ndarray  # (B, M) s, the strongest step
    margin: np.ndarray  # (B, M) what is left before the plan breaks the rule, negative beyond; NaN: does not apply
    worst: np.ndarray  # (B, M) s, the step of that margin
    seam: np.ndarray  # (B, M) share of the plan's first three steps in the squared gradient; 0 where nothing presses
    track: np.ndarray  # (B,) the track with the largest share of the collision pressure; -1: none, or not known
    share: np.ndarray  # (B,) that share

    def __len__(self) -> int:
        return len(self.pressure)

    def of(self, row: int) -> Reasons:
        """One plan alone."""
        return Reasons(self.rules, self.units, self.calibrated, **{n: getattr(self, n)[row : row + 1] for n in _ARRAYS})

    @staticmethod
    def join(parts: Sequence[Reasons]) -> Reasons:
        """Plans of several calls about the same rules, one after the other."""
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
        return Reasons(parts[0].rules, parts[0].units, parts[0].calibrated, **joined)


@torch.no_grad()
def reasons_of(
    why: Attribution,
    trajectory: Tensor,
    context: RuleContext,
    rules: Sequence[Rule],
    calibration: Calibration | None = None,
) -> Reasons:
    """why: what `attribute` said about trajectory (B, H, 4) in `context` under `rules` and `calibration`."""
    scale = (calibration or Calibration.none()).of_rules(why.rules)
    known = np.array(scale.known)
    level = scale.levels(why.gradient_norm).double().numpy()
    top = why.per_step.amax(-1, keepdim=True)
    presses = (top > 0).squeeze(-1).numpy()
    first = (why.per_step >= BEGINS * top).int().argmax(-1).numpy()
    last = why.per_step.argmax(-1).numpy()
    bound = context.bind(trajectory)
    violations = [rule.violation(trajectory, bound).max(-1) for rule in rules]
    margin = -torch.stack([worst.values for worst in violations], -1).double().numpy()
    step = torch.stack([worst.indices for worst in violations], -1).numpy()
    share, track = _largest_share(why)
    return Reasons(
        rules=why.rules,
        units=tuple(rule.unit for rule in rules),
        calibrated=tuple(bool(k) for k in known),
        pressure=why.pressure.double().numpy(),
        level=np.where(known, level, np.nan),
        begins=np.where(presses, STEP_SECONDS * (first + 1), np.nan),
        peak=np.where(presses, STEP_SECONDS * (last + 1), np.nan),
        margin=np.where(np.isfinite(margin), margin, np.nan),
        worst=np.where(np.isfinite(margin), STEP_SECONDS * (step + 1), np.nan),
        seam=why.seam_share.double().numpy(),
        track=track.numpy(),
        share=share.double().numpy(),
    )


def _largest_share(why: Attribution) -> tuple[Tensor, Tensor]:
    """(B,) share of the object that has the largest, and the track that it is."""
    if not why.agent_share.shape[1]:
        return torch.zeros(len(why.pressure)), torch.full((len(why.pressure),), -1)
    share, row = why.agent_share.max(-1)
    if why.tracks is None:
        return share, torch.full_like(row, -1)
    return share, torch.where(share > 0, why.tracks.gather(1, row.unsqueeze(1)).squeeze(1), -1)
