"""A user's trajectory from a file: .csv with named columns, or .npz."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from radp.runs.errors import BadInput, reading_file
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import plan_from_world
from radp.storage.unpacking import read_csv, read_npz_arrays

FARTHEST = 1e8  # m from the origin: more is not on this planet
COLUMNS = "x, y and heading (or cos, sin), and t if the step is not 0.1 s"


def read_plan(path: Path, now: Observation, world: bool = False) -> Plan:
    """One plan of the rear axle [m, rad, s from now], ego frame or, with `world`, the scenario's coordinates."""
    columns = _read_csv(path) if path.suffix == ".csv" else _read_npz(path)
    missing = [name for name in ("x", "y") if name not in columns]
    if missing or ("heading" not in columns and not {"cos", "sin"} <= columns.keys()):
        raise BadInput(f"{path} has the columns {', '.join(columns) or 'none'}, expected {COLUMNS}")
    heading = columns["heading"] if "heading" in columns else np.arctan2(columns["sin"], columns["cos"])
    poses = np.stack((columns["x"], columns["y"], heading), -1)
    times = columns.get("t", 0.1 * np.arange(1, len(poses) + 1))
    if len(poses) < 2 or not np.isfinite(poses).all() or not np.isfinite(times).all():
        raise BadInput(f"{path}: expected at least two rows, all of them finite numbers")
    if np.abs(poses[:, :2]).max() > FARTHEST:
        raise BadInput(f"{path}: expected positions within {FARTHEST:g} m")
    if times[0] < 0 or (np.diff(times) <= 0).any():
        raise BadInput(f"{path}: times must begin at 0 or later and increase")
    if world:
        return plan_from_world(now, poses[None], times[None])
    trajectory = np.concatenate((poses[:, :2], np.cos(poses[:, 2:]), np.sin(poses[:, 2:])), -1)
    return Plan(torch.from_numpy(trajectory[None]), torch.from_numpy(times[None].astype(np.float64)))


def _read_csv(path: Path) -> dict[str, np.ndarray]:
    with reading_file(path, ".csv with a header and numbers"):
        rows = read_csv(path)
        names = list(rows[0]) if rows else []
        return {str(name).strip(): np.array([float(row[name]) for row in rows]) for name in names}


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """Arrays (H,) by column, or `trajectory` (H, 3: x, y, heading) or (H, 4: x, y, cos, sin), and `t` (H,)."""
    with reading_file(path, ".csv or .npz trajectory"):
        columns = {name: np.asarray(array, dtype=np.float64) for name, array in read_npz_arrays(path).items()}
    table = columns.pop("trajectory", None)
    if table is not None:
        if table.ndim != 2 or table.shape[1] not in (3, 4):
            raise BadInput(f"{path}: trajectory has shape {table.shape}, expected (H, 3) or (H, 4)")
        names = ("x", "y", "heading") if table.shape[1] == 3 else ("x", "y", "cos", "sin")
        columns |= dict(zip(names, table.T))
    if len({column.shape for column in columns.values()}) > 1 or any(c.ndim != 1 for c in columns.values()):
        raise BadInput(f"{path}: columns must be of one length")
    return columns
