"""Which lane follows which, where a source does not say: by end points and headings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from radp.geometry.lines import point_at
from radp.sources.limits import MOST_MEETINGS

JOINT = 0.6  # m between the end of a lane and the start of its successor
MAX_KINK = np.pi / 4  # rad between the directions at a joint
LOOK = 2.0  # m of a line that tell its direction at an end


def end_directions(lines: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """L lines (P, 2) -> directions (L,) [rad] at the start and at the end, over 2 m."""
    begin, end = np.zeros(len(lines)), np.zeros(len(lines))
    for i, line in enumerate(lines):
        ahead = point_at(line, np.array([LOOK]))[0] - line[0]
        behind = line[-1] - point_at(line[::-1], np.array([LOOK]))[0]
        begin[i], end[i] = np.arctan2(ahead[1], ahead[0]), np.arctan2(behind[1], behind[0])
    return begin, end


def successors_by_ends(lines: Sequence[np.ndarray]) -> list[list[int]]:
    """L lines -> per line the lines that start where it ends and go on in its direction, nearest first."""
    if not lines:
        return []
    begin, end = end_directions(lines)
    starts, ends = np.array([line[0] for line in lines]), np.array([line[-1] for line in lines])
    rows = []
    tree = cKDTree(starts)
    if np.sum(tree.query_ball_point(ends, JOINT, return_length=True)) > MOST_MEETINGS:
        raise ValueError(f"more than {MOST_MEETINGS} lanes meet each other")
    for i, near in enumerate(tree.query_ball_point(ends, JOINT)):
        fits = [j for j in near if j != i and abs(turn(begin[j] - end[i])) < MAX_KINK]
        gaps = np.hypot(*(starts[fits] - ends[i]).T)
        rows.append([fits[k] for k in np.lexsort((fits, gaps))])
    return rows


def turn(angle: float | np.ndarray) -> np.ndarray:
    """An angle brought to -pi..pi."""
    return (np.asarray(angle) + np.pi) % (2 * np.pi) - np.pi


def inverse(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Successors -> predecessors, or the other way round."""
    out: list[list[int]] = [[] for _ in rows]
    for i, row in enumerate(rows):
        for j in row:
            out[j].append(i)
    return out
