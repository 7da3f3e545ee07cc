"""Single polylines as numpy arrays: what readers of maps need when they lay out lanes."""

from __future__ import annotations

import numpy as np


def arc_length(points: np.ndarray) -> np.ndarray:
    """(P, 2) -> (P,): distance along the line, starting at 0."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    return np.concatenate([[0.0], np.cumsum(steps)])


def point_at(points: np.ndarray, s: np.ndarray) -> np.ndarray:
    """(P, 2), (S,) -> (S, 2): points at arc lengths, held at both ends."""
    along = arc_length(points)
    return np.stack([np.interp(s, along, points[:, 0]), np.interp(s, along, points[:, 1])], axis=-1)


def resample(points: np.ndarray, spacing: float, count: int | None = None) -> np.ndarray:
    """(P, 2) -> (Q, 2): equally spaced points, both ends kept; Q = `count` or about length / spacing + 1."""
    length = arc_length(points)[-1]
    count = count or max(2, round(length / spacing) + 1)
    return point_at(points, np.linspace(0.0, length, count))


def tangents(points: np.ndarray) -> np.ndarray:
    """(P, 2) -> (P, 2): unit direction at each point, the mean direction of the segments that meet there."""
    steps = np.diff(points, axis=0)
    steps = steps / np.maximum(np.hypot(*steps.T), 1e-9)[:, None]
    mean = np.concatenate([steps[:1], steps[:-1] + steps[1:], steps[-1:]])
    return mean / np.maximum(np.hypot(*mean.T), 1e-9)[:, None]


def offset(points: np.ndarray, distance: float | np.ndarray) -> np.ndarray:
    """(P, 2) -> (P, 2): the line shifted to its left by `distance` (scalar or (P,)); corners are mitred."""
    direction = tangents(points)
    steps = np.diff(points, axis=0)
    steps = steps / np.maximum(np.hypot(*steps.T), 1e-9)[:, None]
    arriving = np.concatenate([steps[:1], steps])
    mitre = np.maximum((arriving * direction).sum(axis=1), 0.5)  # cosine of half the corner
    normal = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
    return points + normal * (np.asarray(distance) / mitre)[..., None]


def headings(points: np.ndarray) -> np.ndarray:
    """(P, 2) -> (P,): unwrapped direction of the tangent [rad]."""
    direction = tangents(points)
    return np.unwrap(np.arctan2(direction[:, 1], direction[:, 0]))


def largest_curvature(points: np.ndarray, chord: float) -> float:
    """Largest |change of heading| per metre [1/m], measured over `chord` metres of the line."""
    length = arc_length(points)[-1]
    if length < chord / 2:
        return 0.0
    fine = resample(points, min(0.5, length / 4))
    along, heading = arc_length(fine), headings(fine)
    ahead = np.interp(along + chord, along, heading)
    return float(np.max(np.abs(ahead - heading)) / min(chord, length))
