"""Driving along a line behind whoever is on it: the part that IDM and PDM-Closed share, compiled with numba.

Everything happens in the frame of a sampled line (radp.geometry.line_kernels): s = arc length of the REAR AXLE,
lateral offset positive to the left.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.kernels import wrap_angle
from radp.geometry.line_kernels import line_curvature, line_pose, line_project
from radp.scenario import Box
from radp.scenario.vehicle import PACIFICA

X, Y, HEADING, VX, VY = (int(column) for column in Box)
FRONT, CENTER = PACIFICA.front_length, PACIFICA.rear_axle_to_center
HALF_WIDTH = PACIFICA.width / 2
SIDE_MARGIN = 0.1  # m that the ego keeps on either side when it looks for a lead
JUMP = 6.0  # m by which a moving object's place on the line may shift in a step besides its own motion
DIRECT = 1.5  # m: smaller shifts are left to the controller, which knows best how to close them
SIDE_ACCEL = 1.5  # m/s2 with which the ego moves over to another lane
SHORTEST_BLEND = 10.0  # m
STEEPEST = 0.7  # lateral metres in one metre along
YELLOW_BRAKE = 3.0  # m/s2: a yellow light that needs more is passed


@njit(cache=True, nogil=True)
def idm_acceleration(
    speed: float,
    target: float,
    gap: float,
    lead_speed: float,
    min_gap: float,
    headway: float,
    accel: float,
    decel: float,
    exponent: float,
) -> float:
    """Intelligent driver model [m/s2], between -decel and accel; an infinite gap is a free road."""
    wish = min_gap + speed * headway + speed * (speed - lead_speed) / (2.0 * math.sqrt(accel * decel))
    brake = max(0.0, wish) / max(gap, min_gap)
    free = (speed / max(target, 0.1)) ** exponent
    return min(accel, max(-decel, accel * (1.0 - free - brake * brake)))


@njit(cache=True, nogil=True)
def box_in_band(
    along: float, lateral: float, turned: float, length: float, width: float, low: float, high: float
) -> tuple[float, float]:
    """Extent along a straight line of the part of a box between the offsets low..high; (inf, -inf) when it has none.

    Box: centre at (along, lateral), heading `turned` against the line.
    """
    c, s = math.cos(turned), math.sin(turned)
    across = 0.5 * (abs(s) * length + abs(c) * width)
    if lateral - across > high or lateral + across < low:
        return np.inf, -np.inf
    reach = 0.5 * (abs(c) * length + abs(s) * width)
    if lateral - across >= low and lateral + across <= high:
        return along - reach, along + reach
    nearest, furthest = np.inf, -np.inf
    for i in range(4):
        a_x, a_y = _corner(i, c, s, length, width, along, lateral)
        b_x, b_y = _corner((i + 1) % 4, c, s, length, width, along, lateral)
        if low <= a_y <= high:
            nearest, furthest = min(nearest, a_x), max(furthest, a_x)
        for k in range(2):
            border = low if k == 0 else high
            if (a_y - border) * (b_y - border) < 0.0:
                at = a_x + (border - a_y) / (b_y - a_y) * (b_x - a_x)
                nearest, furthest = min(nearest, at), max(furthest, at)
    return nearest, furthest


@njit(cache=True, nogil=True, inline="always")
def _corner(
    i: int, c: float, s: float, length: float, width: float, along: float, lateral: float
) -> tuple[float, float]:
    half_l = 0.5 * length if i == 0 or i == 3 else -0.5 * length
    half_w = 0.5 * width if i < 2 else -0.5 * width
    return along + c * half_l - s * half_w, lateral + s * half_l + c * half_w


@njit(cache=True, nogil=True)
def ego_on_line(
    ego: np.ndarray, points: np.ndarray, headings: np.ndarray, step: float, until: float
) -> tuple[float, float, float]:
    """Arc length, lateral offset and slope (lateral metres in a metre along) of a rear axle: ego (>= 3,) x, y, heading.

    Only the line's first `until` metres are searched: a route may come by the same place again.
    """
    s, lateral = line_project(ego[0], ego[1], points, headings, step, 0, int(until / step))
    _, _, direction = line_pose(s, points, headings, step)
    turned = min(0.6, max(-0.6, wrap_angle(ego[2] - direction)))
    slope = math.tan(turned) * max(0.2, 1.0 - line_curvature(s, headings, step) * lateral)
    return s, lateral, min(STEEPEST, max(-STEEPEST, slope))


@njit(cache=True, nogil=True)
def blend_length(speed: float, shift: float) -> float:
    """Metres in which the ego moves over by `shift` metres at a comfortable acceleration; 0 for small shifts."""
    if abs(shift) <= DIRECT:
        return 0.0
    return max(SHORTEST_BLEND, speed * math.sqrt(6.0 * abs(shift) / SIDE_ACCEL))


@njit(cache=True, nogil=True, inline="always")
def lateral_at(s: float, s0: float, lateral: float, slope: float, goal: float, length: float) -> tuple[float, float]:
    """Offset and slope at s of the cubic that leaves (s0, lateral, slope) and has reached `goal` after `length`.

    Replanned at every step it acts as a spring with damping 0.8, so the ego settles without swinging.
    """
    if length == 0.0 or s >= s0 + length:
        return goal, 0.0
    u = max(0.0, (s - s0) / length)
    shift, rise = goal - lateral, slope * length
    offset = lateral + rise * u + (3.0 * shift - 2.0 * rise) * u * u + (rise - 2.0 * shift) * u * u * u
    tilt = (rise + 2.0 * (3.0 * shift - 2.0 * rise) * u + 3.0 * (rise - 2.0 * shift) * u * u) / length
    return offset, tilt


@njit(cache=True, nogil=True)
def pose_beside_line(
    s: float, offset: float, tilt: float, points: np.ndarray, headings: np.ndarray, step: float, out: np.ndarray
) -> None:
    """Write x, y, heading of the place `offset` metres left of the line at s, on a path of slope `tilt`."""
    x, y, heading = line_pose(s, points, headings, step)
    out[0] = x - offset * math.sin(heading)
    out[1] = y + offset * math.cos(heading)
    stretch = max(0.2, 1.0 - line_curvature(s, headings, step) * offset)
    out[2] = wrap_angle(heading + math.atan(tilt / stretch))


@njit(cache=True, nogil=True)
def place_on_line(
    x: float, y: float, heading: float, near: int, reach: int, points: np.ndarray, headings: np.ndarray, step: float
) -> tuple[float, float, float]:
    """Arc length, lateral offset and heading against the line of a box centre, searched around sample `near`."""
    s, lateral = line_project(x, y, points, headings, step, near, reach)
    _, _, direction = line_pose(s, points, headings, step)
    return s, lateral, wrap_angle(heading - direction)


@njit(cache=True, nogil=True)
def stop_gap(s: float, speed: float, stops: np.ndarray, yellow: np.ndarray) -> float:
    """Metres from the front bumper to the nearest light that the ego has to stop at; inf when there is none.

    Lights behind the bumper are passed, and so are yellow ones that the ego could only reach by hard braking.
    """
    best = np.inf
    for k in range(stops.shape[0]):
        gap = stops[k] - s - FRONT
        if gap < -0.5:
            continue
        if yellow[k] and speed * speed > 2.0 * YELLOW_BRAKE * max(gap - 1.0, 0.1):
            continue
        best = min(best, max(gap, 0.0))
    return best


@njit(cache=True, nogil=True)
def gap_is_free(
    s: float,
    speed: float,
    agents: np.ndarray,
    valid: np.ndarray,
    size: np.ndarray,
    points: np.ndarray,
    headings: np.ndarray,
    step: float,
) -> bool:
    """Whether the ego at s may move over to the line: nobody beside it, nobody soon too near before or behind.

    agents (A, 5), valid (A,), size (A, 3): the objects now.
    """
    for a in range(agents.shape[0]):
        if not valid[a]:
            continue
        along, lateral, turned = place_on_line(
            agents[a, X], agents[a, Y], agents[a, HEADING], -1, 0, points, headings, step
        )
        rear, front = box_in_band(along, lateral, turned, size[a, 0], size[a, 1], -1.5, 1.5)
        if rear == np.inf:
            continue
        direction = agents[a, HEADING] - turned
        other = agents[a, VX] * math.cos(direction) + agents[a, VY] * math.sin(direction)
        if along >= s + CENTER:
            if rear - (s + FRONT) < 2.0 + 0.3 * speed + 2.5 * max(0.0, speed - other):
                return False
        elif s - (FRONT - 2.0 * CENTER) - front < 2.0 + 0.4 * other + 3.0 * max(0.0, other - speed):
            return False
    return True
