"""From noise to trajectories in numpy: the sampler of `radp.model.sampler` and what follows it, without torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from radp.runtime.manifest import ExportManifest, Schedule

DT = 0.1  # s between two poses
STANDSTILL = 1e-3  # m: shorter steps have no direction of their own


def solve(
    denoise: Callable[[np.ndarray, float], np.ndarray], x: np.ndarray, current: np.ndarray, schedule: Schedule
) -> np.ndarray:
    """x (B, P, 81, 4) at the first time, current (B, P, 4) -> clean (B, P, 81, 4), step 0 pinned to `current`."""
    previous = None
    x[:, :, 0] = current
    for time, keep, take, more in zip(schedule.times, schedule.keep, schedule.take, schedule.more):
        estimate = denoise(x, float(time))
        direction = estimate if previous is None else estimate + more * (estimate - previous)
        x = keep * x + take * direction
        x[:, :, 0] = current
        previous = estimate
    clean = denoise(x, float(schedule.times[-1])).copy()
    clean[:, :, 0] = current
    return clean


def to_metres(clean: np.ndarray, manifest: ExportManifest) -> np.ndarray:
    """(B, P, 81, 4) as diffused -> (B, P, 80, 4) x, y, cos, sin in metres, without the current pose."""
    waypoints = clean * manifest.deviation + manifest.mean
    if manifest.size["target_space"] == "velocity":
        scale = np.float32(float(manifest.size["velocity_scale"]) * DT)
        waypoints[:, :, 1:, :2] = waypoints[:, :, :1, :2] + np.cumsum(clean[:, :, 1:, :2] * scale, axis=2)
        waypoints[:, :, 1:, 2:] = clean[:, :, 1:, 2:]
    return waypoints[:, :, 1:]


def close_seam(trajectory: np.ndarray, speed: np.ndarray, fade: float) -> np.ndarray:
    """Plans (B, H, 4), the ego's speed (B,) -> plans on the same paths that start at that speed; `radp.model.seam`."""
    start = np.broadcast_to(np.array([0, 0, 1, 0], trajectory.dtype), (len(trajectory), 1, 4))
    poses = np.concatenate((start, trajectory), 1)
    lengths = np.linalg.norm(np.diff(poses[..., :2], axis=1), axis=-1)
    own = lengths / DT
    fading = np.exp(-DT / fade * np.arange(own.shape[1]))
    wanted = np.maximum(own + (speed[:, None] - own[:, :1]) * fading, 0.0)
    distances = np.cumsum(wanted * DT, axis=1)
    made = [_read_off(*row) for row in zip(poses, lengths, distances)]
    return np.stack(made).astype(trajectory.dtype)


def _read_off(poses: np.ndarray, lengths: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Path (1 + H, 4) of steps (H,) -> its poses at distances (H,) from its start; straight on after its end."""
    ends = np.concatenate(([0.0], np.cumsum(lengths)))
    after = np.clip(np.searchsorted(ends, distance, side="right"), 1, len(lengths))
    step = lengths[after - 1]
    share = np.where(step > STANDSTILL, (distance - ends[after - 1]) / np.maximum(step, STANDSTILL), 0.0)
    inside = np.minimum(share, 1.0)[:, None]
    first, last = poses[after - 1], poses[after]
    turned = first[:, 2:] + inside * (last[:, 2:] - first[:, 2:])
    heading = turned / np.maximum(np.linalg.norm(turned, axis=-1, keepdims=True), 1e-6)
    beyond = np.maximum(distance - ends[-1], 0.0)[:, None]
    return np.concatenate((first[:, :2] + inside * (last[:, :2] - first[:, :2]) + beyond * heading, heading), -1)
