"""Exact pressures of a run, the seam of the plans and the rest of them apart."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from radp.attribution.teacher import SEAM, part_pressure
from radp.evaluation.intervention import HIGH
from radp.report.table import Table
from radp.sim.rollout import Rollout


def seam_tables(rollouts: Iterable[Rollout], where: str) -> list[Table]:
    """One table, or none if no drive keeps the shares of the seam."""
    kept = [one for one in rollouts if one.exact_pressures is not None and one.seam_shares is not None]
    if not kept:
        return []
    pressure = np.concatenate([one.exact_pressures for one in kept if one.exact_pressures is not None])
    share = np.concatenate([one.seam_shares for one in kept if one.seam_shares is not None])
    seam, rest = part_of(pressure, share), part_of(pressure, 1.0 - share)
    rows = []
    for i, rule in enumerate(kept[0].rules):
        high = pressure[:, i] > np.quantile(pressure[:, i], HIGH)
        figures = (pressure[:, i].mean(), seam[:, i].mean(), rest[:, i].mean(), np.percentile(rest[:, i], 95))
        usual = f"{100 * np.median(share[high, i]):.0f} %" if high.any() else "n/a"
        rows.append((rule, *(f"{figure:.3f}" for figure in figures), usual))
    notes = (
        f"Means over {len(pressure)} plans. Seam: the gradient in steps 1 to {SEAM} of a plan, whose differences reach "
        "back to the present speed and acceleration: how the plan begins. Plan: in all later steps. The squares of "
        f"exp(A) - 1 of both add up to that of the whole. High: above the {HIGH:.0%} quantile of the rule.",
    )
    header = ("rule", "pressure", "seam", "plan", "plan, 95th percentile", "share of the seam where high (median)")
    return [Table(f"Seam and plan, {where}", header, tuple(rows), notes)]


def part_of(pressure: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Pressures of a part with these shares of the squared gradient, any shape."""
    parts = part_pressure(torch.from_numpy(pressure.astype(np.float64)), torch.from_numpy(share.astype(np.float64)))
    return np.nan_to_num(parts.clamp(min=0.0).numpy())
