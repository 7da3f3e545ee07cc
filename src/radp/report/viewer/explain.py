"""Pressures of a drive that is over: those it was driven with, or the teacher's, computed from the plans it kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from radp.attribution import attribute
from radp.attribution.afterwards import Judged, scenes_of_drive, tracks_of_drive
from radp.attribution.calibration import Calibration
from radp.incidents.course import MOSTLY, shares_of
from radp.incidents.incident import OF_MOTION
from radp.incidents.words import MOST_LEVEL
from radp.rules import default_rules, registered_rules, rule_set
from radp.rules.sets import ROAD
from radp.sim.rollout import Rollout


@dataclass(frozen=True)
class Explanation:
    """K samples of a drive (fewer than it has where it failed), M rules, A tracks."""

    rules: tuple[str, ...]
    pressure: np.ndarray  # (K, M)
    share: np.ndarray  # (K, A) share of each track in the collision pressure
    jump: np.ndarray | None = None  # (K, M) bool: most of it is that the plan does not begin as the car moves

    def tint(self) -> np.ndarray:
        """(K, A) 0 to 1: share times the height of the collision pressure, full at 20 times its usual level."""
        if "collision" not in self.rules:
            return np.zeros_like(self.share)
        height = self.pressure[:, self.rules.index("collision")] / np.log1p(MOST_LEVEL)
        return self.share * np.nan_to_num(height).clip(0.0, 1.0)[:, None]

    @classmethod
    def of(cls, rollout: Rollout, judged: Judged) -> Explanation:
        """What the teacher said afterwards."""
        of_motion = np.array([name in OF_MOTION for name in judged.why.rules])
        return cls(
            judged.why.rules,
            judged.why.pressure.float().numpy(),
            shares_of(rollout, judged).astype(np.float32),
            of_motion & (judged.reasons.seam > MOSTLY),
        )

    def columns(self, rules: Sequence[str]) -> np.ndarray:
        """(K, len(rules)) pressures of these rules; NaN for those that are not known here."""
        return self._ordered(self.pressure, rules, np.nan).astype(np.float32)

    def jumps(self, rules: Sequence[str]) -> np.ndarray | None:
        """(K, len(rules)) uint8, 1 where a pressure is a jump; None: not known."""
        return None if self.jump is None else self._ordered(self.jump, rules, 0.0).astype(np.uint8)

    def _ordered(self, values: np.ndarray, rules: Sequence[str], otherwise: float) -> np.ndarray:
        out = np.full((len(values), len(rules)), otherwise)
        for i, name in enumerate(rules):
            if name in self.rules:
                out[:, i] = values[:, self.rules.index(name)]
        return out


def rules_reported(explanations: Iterable[Explanation | None]) -> list[str]:
    """The paper's six, then whatever other rules the drives report."""
    names = dict.fromkeys(rule.name for rule in default_rules())
    for why in explanations:
        names |= dict.fromkeys(why.rules if why is not None else ())
    return list(names)


def rule_words(names: Iterable[str]) -> list[dict[str, str]]:
    """What a page says about rules: name, and what is at stake if the rule is known."""
    describes = {rule.name: rule.describes for rule in (*rule_set(ROAD), *registered_rules())}
    return [{"name": name, "describes": describes.get(name, name)} for name in names]


def explain_drive(rollout: Rollout, calibration: Calibration | None = None) -> Explanation | None:
    """The exact pressures of the drive, or what its planner reported; where both are missing, the teacher is asked now.

    None without plans.
    """
    pressure, share, tracks = rollout.exact_pressures, rollout.agent_shares, rollout.share_tracks
    if pressure is None:
        pressure = rollout.pressures
    names = rollout.rules
    if pressure is not None and len(names) != pressure.shape[1]:
        return None  # pressures of rules that nobody named
    if pressure is None or share is None:
        if rollout.plans is None:
            return None
        why = attribute(
            torch.from_numpy(rollout.plans), scenes_of_drive(rollout, len(rollout.plans)), calibration=calibration
        )  # everybody else keeps their velocity
        if pressure is None:
            names, pressure = why.rules, why.pressure.numpy()
        share, tracks = why.agent_share.numpy(), None if why.tracks is None else why.tracks.numpy()
    if tracks is None:
        tracks = tracks_of_drive(rollout, len(share))
    return Explanation(names, pressure, _by_track(share, tracks, len(rollout.agents)))


def _by_track(share: np.ndarray, tracks: np.ndarray, count: int) -> np.ndarray:
    """share (K, N) of the objects of scenes -> (K, count) of tracks."""
    out = np.zeros((len(share), count), dtype=np.float32)
    width = min(share.shape[1], tracks.shape[1])
    sample, row = np.nonzero(tracks[:, :width] >= 0)
    out[sample, tracks[sample, row]] = share[sample, row]
    return out
