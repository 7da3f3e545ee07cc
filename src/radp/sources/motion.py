"""Motion that a log does not tell: velocities from positions, and tracks brought to another rate."""

from __future__ import annotations

import numpy as np

from radp.scenario import Box

MISSING_BEYOND = 1e7  # m; more is a mark for a missing value


def at_center(boxes: np.ndarray, ahead: float) -> None:
    """boxes (T, 5), in place: from a reference point to the box centre `ahead` metres in front of it."""
    heading = boxes[:, Box.HEADING]
    boxes[:, Box.X] += ahead * np.cos(heading)
    boxes[:, Box.Y] += ahead * np.sin(heading)


def differentiate(boxes: np.ndarray, valid: np.ndarray, seconds: np.ndarray) -> None:
    """boxes (T, 5), in place: velocities by central differences within each stretch of valid frames."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], valid, [False])).astype(np.int8)))
    for first, last in zip(edges[::2], edges[1::2]):
        if last - first > 1:
            boxes[first:last, Box.VX] = np.gradient(boxes[first:last, Box.X], seconds[first:last])
            boxes[first:last, Box.VY] = np.gradient(boxes[first:last, Box.Y], seconds[first:last])


def at_rate(boxes: np.ndarray, valid: np.ndarray, dt: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """boxes (A, T, 5), valid (A, T) every `dt` seconds -> the same every `step` seconds; headings turn the short way.

    A moment is valid where the frames on both sides of it are.
    """
    place = np.arange(0.0, (boxes.shape[1] - 1) * dt + 1e-9, step) / dt
    low = np.minimum(np.floor(place + 1e-9).astype(np.int64), boxes.shape[1] - 1)
    high = np.minimum(low + 1, boxes.shape[1] - 1)
    part = np.clip(place - low, 0.0, 1.0)[None, :, None]
    exact = part[0, :, 0] < 1e-6
    change = boxes[:, high] - boxes[:, low]
    change[..., Box.HEADING] = (change[..., Box.HEADING] + np.pi) % (2 * np.pi) - np.pi
    seen = valid[:, low] & (valid[:, high] | exact)
    return np.where(seen[..., None], boxes[:, low] + np.where(exact[None, :, None], 0.0, part) * change, 0.0), seen
