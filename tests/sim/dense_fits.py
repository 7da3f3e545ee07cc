"""The tracker's two fits as they are published: dense, in v0 and accelerations, with a pseudo-inverse."""

from __future__ import annotations

import numpy as np

DT = 0.1


def dense_speeds(poses: np.ndarray) -> np.ndarray:
    """poses (P, 3) -> (P - 1,) speeds."""
    size = len(poses) - 1
    sums = np.concatenate((np.ones((size, 1)), DT * np.tri(size, size - 1, -1)), 1)  # v_k of (v0, a_0, ...)
    heading = np.stack((np.cos(poses[:-1, 2]), np.sin(poses[:-1, 2])), 1)
    model = (heading[:, :, None] * DT * sums[:, None, :]).reshape(2 * size, size)
    jerk = np.zeros((max(size - 2, 0), size))
    for j in range(size - 2):
        jerk[j, j + 1], jerk[j, j + 2] = -1.0, 1.0
    target = np.diff(poses[:, :2], axis=0).reshape(-1)
    return sums @ (np.linalg.pinv(model.T @ model + 1e-4 * jerk.T @ jerk) @ model.T @ target)


def dense_curvatures(poses: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """poses (P, 3) and (P - 1,) speeds -> (P - 1,) curvatures."""
    size = len(speeds)
    sums = np.concatenate((np.ones((size, 1)), DT * np.tri(size, size - 1, -1)), 1)
    model = speeds[:, None] * DT * sums
    penalty = np.diag([1e-10] + [1e-2] * (size - 1))
    change = (np.diff(poses[:, 2]) + np.pi) % (2 * np.pi) - np.pi
    return sums @ (np.linalg.pinv(model.T @ model + penalty) @ model.T @ change)
