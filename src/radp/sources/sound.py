"""What a log must be before anything is computed from it: sizes that fit, numbers of this planet, names to print.

Readers ask `room_for` before they allocate. `check_log` looks at what they made, before compiled code does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from radp.scenario import Ego, RoadMap, Scenario, Tracks
from radp.scenario.recording import Recording
from radp.sources.limits import (
    LEAST_STEP_US,
    MOST_BOXES,
    MOST_COORDINATE,
    MOST_FRAMES,
    MOST_NAME,
    MOST_SIZE,
    MOST_SPEED,
    MOST_SPEED_LIMIT,
    MOST_STEP_US,
    MOST_TRACKS,
)


def room_for(tracks: int, frames: int) -> None:
    """ValueError if so many tracks over so many frames are more than a log has."""
    if not 0 <= frames <= MOST_FRAMES:
        raise ValueError(f"it has {frames} frames, expected at most {MOST_FRAMES}")
    if tracks > MOST_TRACKS or tracks * frames > MOST_BOXES:
        raise ValueError(f"it has {tracks} tracks over {frames} frames, expected at most {MOST_BOXES} boxes")


def speed_limit(value: float) -> float | None:
    """m/s as a file has it; None for 0, which stands for unknown. ValueError for what is no speed."""
    if not (math.isfinite(value) and 0.0 <= value <= MOST_SPEED_LIMIT):
        raise ValueError(f"a speed limit is {value:g} m/s, expected 0 (unknown) to {MOST_SPEED_LIMIT:g}")
    return value or None


def check_log(log: Scenario | Recording) -> None:
    """ValueError names the first field that no real log can have, with its value."""
    _check_names("token", (log.token,))
    _check_names("name of the map", (log.map.name or "-",))
    _check_names("track", log.tracks.ids)
    _check_names("tag", (*log.tags.keys(), *(value for value in log.tags.values() if value)), 10 * MOST_NAME)
    room_for(len(log.tracks), len(log.time_us))
    _check_times(log.time_us)
    _check_tracks(log.tracks)
    _check_road(log.map)
    if isinstance(log, Scenario):
        _check_names("kind", (log.kind,))
        _check_names("roadblock of the route", log.route)
        check_ego(log.ego)


def _check_names(what: str, names: Iterable[str], most: int = MOST_NAME) -> None:
    """Names are printed, and become parts of file names: no control characters, no half characters, not too long."""
    every = tuple(names)
    if "".join(every).isprintable() and all(0 < len(name) <= most for name in every):
        return
    worst = next(name for name in every if not name.isprintable() or not 0 < len(name) <= most)
    raise ValueError(f"{what} is {worst[:60]!a}, expected 1 to {most} printable characters")


def _check_times(time_us: np.ndarray) -> None:
    if len(time_us) < 2:
        raise ValueError(f"it has {len(time_us)} frames, at least 2 are needed")
    if abs(int(time_us[0])) > 1 << 61 or abs(int(time_us[-1])) > 1 << 61:
        raise ValueError("its times are not microseconds of any date")
    steps = np.diff(time_us)
    wrong = (steps < LEAST_STEP_US) | (steps > MOST_STEP_US)
    if wrong.any():
        frame = int(np.argmax(wrong))
        raise ValueError(
            f"frame {frame + 1} follows {steps[frame] / 1e6:g} s after the one before it, "
            f"expected {LEAST_STEP_US / 1e6:g} to {MOST_STEP_US / 1e6:g} s"
        )


def _check_tracks(tracks: Tracks) -> None:
    size, seen = tracks.size, tracks.valid.any(axis=1)
    wrong = seen & ~((size[:, :2] > 0) & (size[:, :2] <= MOST_SIZE)).all(axis=1)
    wrong |= ~(np.isfinite(size).all(axis=1) & (size >= 0).all(axis=1))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"track {tracks.ids[i]!r} has the size {size[i].tolist()} m, expected 0 to {MOST_SIZE:g}")
    low, high = tracks.state.min(axis=(0, 1), initial=0.0), tracks.state.max(axis=(0, 1), initial=0.0)
    _check_bounds("track", low, high, (MOST_COORDINATE, MOST_COORDINATE, 1e4, MOST_SPEED, MOST_SPEED))


def check_ego(ego: np.ndarray) -> None:
    """ValueError if ego states (T, 11) are not of this planet."""
    columns = [Ego.X, Ego.Y, Ego.HEADING, Ego.VX, Ego.VY]
    low, high = ego[:, columns].min(axis=0), ego[:, columns].max(axis=0)
    _check_bounds("ego", low, high, (MOST_COORDINATE, MOST_COORDINATE, 1e4, MOST_SPEED, MOST_SPEED))


def _check_bounds(what: str, low: np.ndarray, high: np.ndarray, most: tuple[float, ...]) -> None:
    """Values between low and high (5,) of x, y, heading, vx, vy; NaN is out of every bound."""
    for name, least, largest, bound in zip(("x", "y", "heading", "vx", "vy"), low, high, most):
        if not (-bound <= least and largest <= bound):
            worst = largest if not largest <= bound else least
            raise ValueError(f"{what} has {name} = {worst:g}, expected at most {bound:g}")


def _check_road(road: RoadMap) -> None:
    _check_names("lane", road.lane_ids)
    _check_names("roadblock", road.roadblocks.ids)
    for what, points in (("centerline", road.centerlines), ("left border", road.left), ("right border", road.right)):
        largest = np.abs(points.values).max(initial=0.0)
        if not largest <= MOST_COORDINATE:
            raise ValueError(f"a {what} has a point at {largest:g} m, expected at most {MOST_COORDINATE:g}")
    limits = road.speed_limit[road.has_speed_limit]
    wrong = ~((limits > 0) & (limits <= MOST_SPEED_LIMIT))
    if wrong.any():
        raise ValueError(f"a speed limit is {limits[wrong][0]:g} m/s, expected more than 0 to {MOST_SPEED_LIMIT:g}")
