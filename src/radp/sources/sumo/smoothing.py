"""From SUMO's jerky front-bumper points to motion that a car could drive.

The path is smoothed over arc length, the progress along it over time; the pose of a car is then the point of the
path one wheel base and overhang behind the bumper, with the path's tangent as heading. Velocity is along the heading
by construction, positions never go backwards, and all derivatives come from the same two functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d

from radp.geometry.lines import arc_length
from radp.scenario import DT, PACIFICA, Ego

PATH_STEP = 0.25  # [m] between points of the path
PATH_SIGMA = (2.4, 9.0)  # [m] limits of the path's smoothing, 0.6 s of travel in between
PATH_SIGMA_TIME = 0.6  # [s]
HEADING_SIGMA = 0.8  # [m]
PROGRESS_SIGMA = 0.5  # [s]
BACK, AHEAD = 16.0, 12.0  # [m] straight pieces added to both ends of a path
REAR_OVERHANG = 0.21  # share of a car's length behind its rear axle


@dataclass(frozen=True)
class SmoothDrive:
    """A smooth drive of T frames: a path sampled every PATH_STEP metres and the bumper's place on it over time.

    points (P, 2), heading (P,) unwrapped; s (T,) arc length of the front bumper from the path's first point.
    """

    points: np.ndarray
    heading: np.ndarray
    s: np.ndarray

    def at(self, lag: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """x, y, heading, curvature (T,) of the point `lag` metres behind the front bumper."""
        along = np.arange(len(self.points)) * PATH_STEP
        where = self.s - lag
        curvature = np.gradient(self.heading, PATH_STEP)
        x, y, heading, bend = (
            np.interp(where, along, v) for v in (self.points[:, 0], self.points[:, 1], self.heading, curvature)
        )
        return x, y, heading, bend

    @property
    def speed(self) -> np.ndarray:
        """(T,) [m/s]."""
        return np.maximum(np.gradient(self.s, DT), 0.0)

    def ego_states(self) -> np.ndarray:
        """(T, 11) columns Ego: the Pacifica whose front bumper is where the car's was."""
        x, y, heading, bend = self.at(PACIFICA.front_length)
        speed = self.speed
        accel = np.gradient(speed, DT)
        yaw_rate = speed * bend
        steering = np.arctan(PACIFICA.wheel_base * bend)
        out = np.zeros((len(x), len(Ego)))
        out[:, Ego.X], out[:, Ego.Y], out[:, Ego.HEADING] = x, y, wrap(heading)
        out[:, Ego.VX], out[:, Ego.AX], out[:, Ego.AY] = speed, accel, speed * yaw_rate
        out[:, Ego.YAW_RATE], out[:, Ego.YAW_ACCEL] = yaw_rate, np.gradient(yaw_rate, DT)
        out[:, Ego.STEERING], out[:, Ego.STEERING_RATE] = steering, np.gradient(steering, DT)
        return out

    def box_states(self, length: float) -> np.ndarray:
        """(T, 5) columns Box of a car of this length."""
        x, y, heading, bend = self.at(length * (1 - REAR_OVERHANG))
        ahead = length * (0.5 - REAR_OVERHANG)
        speed = self.speed
        cos, sin, turn = np.cos(heading), np.sin(heading), speed * bend * ahead
        return np.stack(
            [x + ahead * cos, y + ahead * sin, wrap(heading), speed * cos - turn * sin, speed * sin + turn * cos],
            axis=1,
        )


def smooth_drive(front: np.ndarray, angle: np.ndarray) -> SmoothDrive:
    """front (T, 2) bumper points, angle (T,) headings from SUMO -> SmoothDrive."""
    moved = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(front, axis=0).T))])
    path, reached = _resampled_path(front, angle, moved)
    speed = np.gradient(moved, DT) if len(moved) > 1 else np.zeros(1)
    points = _smooth_path(path, _speed_on_path(speed, reached, len(path)))
    along = arc_length(points)
    even = np.arange(0.0, along[-1], PATH_STEP)
    points_even = np.stack([np.interp(even, along, points[:, 0]), np.interp(even, along, points[:, 1])], axis=1)
    direction = np.gradient(points_even, axis=0)
    heading = np.unwrap(np.arctan2(direction[:, 1], direction[:, 0]))
    heading = gaussian_filter1d(heading, HEADING_SIGMA / PATH_STEP, mode="nearest")
    progress = np.interp(reached, np.arange(len(path)) * PATH_STEP, along)
    return SmoothDrive(points_even, heading, _smooth_progress(progress))


def _resampled_path(front: np.ndarray, angle: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Path (P, 2) every PATH_STEP with straight pieces at both ends; where on it each frame is (T,)."""
    keep = np.concatenate([[True], np.diff(moved) > 1e-3])
    s, points = moved[keep], front[keep]
    back = points[0] - BACK * np.array([np.cos(angle[0]), np.sin(angle[0])])
    ahead = points[-1] + AHEAD * np.array([np.cos(angle[-1]), np.sin(angle[-1])])
    s = np.concatenate([[s[0] - BACK], s, [s[-1] + AHEAD]])
    points = np.concatenate([back[None], points, ahead[None]])
    even = np.arange(s[0], s[-1], PATH_STEP)
    return np.stack([np.interp(even, s, points[:, 0]), np.interp(even, s, points[:, 1])], axis=1), moved + BACK


def _speed_on_path(speed: np.ndarray, reached: np.ndarray, count: int) -> np.ndarray:
    """Speed (T,) -> (count,) along the path."""
    along = np.arange(count) * PATH_STEP
    order = np.concatenate([[True], np.diff(reached) > 1e-3])
    return gaussian_filter1d(np.interp(along, reached[order], speed[order]), 5.0 / PATH_STEP, mode="nearest")


def _smooth_path(path: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Gaussian whose width grows with speed: blended from four fixed widths."""
    sigma = np.clip(PATH_SIGMA_TIME * speed, *PATH_SIGMA)
    widths = np.geomspace(*PATH_SIGMA, 4)
    levels = np.stack([_straight_ended_filter(path, width / PATH_STEP) for width in widths])
    position = np.interp(sigma, widths, np.arange(len(widths)))
    low = np.minimum(position.astype(int), len(widths) - 2)
    share = (position - low)[:, None]
    row = np.arange(len(path))
    return levels[low, row] * (1 - share) + levels[low + 1, row] * share


def _straight_ended_filter(path: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian G applied as 2 G - G^2, which does not pull bends inwards; both ends are continued straight."""
    pad = int(8 * sigma) + 1
    steps = np.arange(1, pad + 1)[:, None]
    before = path[0] - steps[::-1] * (path[1] - path[0])
    after = path[-1] + steps * (path[-1] - path[-2])
    once = gaussian_filter1d(np.concatenate([before, path, after]), sigma, axis=0)
    return (2 * once - gaussian_filter1d(once, sigma, axis=0))[pad:-pad]


def _smooth_progress(s: np.ndarray) -> np.ndarray:
    """(T,) -> (T,): Gaussian over time, both ends continued at constant speed; monotone as its input."""
    if len(s) < 3:
        return s
    sigma = PROGRESS_SIGMA / DT
    pad = int(4 * sigma) + 1
    steps = np.arange(1, pad + 1)
    padded = np.concatenate([s[0] - steps[::-1] * (s[1] - s[0]), s, s[-1] + steps * (s[-1] - s[-2])])
    return gaussian_filter1d(padded, sigma)[pad:-pad]


def smooth_chord(front: np.ndarray, angle: np.ndarray, length: float, sigma: float = 0.3) -> np.ndarray:
    """(T, 5) columns Box of a long vehicle: SUMO's own pose, lightly smoothed over time [s]."""
    wide = sigma / DT
    nose = gaussian_filter1d(front, wide, axis=0, mode="nearest")
    heading = gaussian_filter1d(angle, wide, mode="nearest")
    center = nose - length / 2 * np.stack([np.cos(heading), np.sin(heading)], axis=1)
    velocity = np.gradient(center, DT, axis=0) if len(center) > 1 else np.zeros_like(center)
    return np.concatenate([center, wrap(heading)[:, None], velocity], axis=1)


def wrap(angle: np.ndarray) -> np.ndarray:
    """To [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi
