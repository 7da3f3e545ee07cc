"""The 14 kinds of nuPlan's planning challenge, found in a log by written rules.

Each rule is a mask over the frames of one ego's drive; the frames where a mask turns true are its tags. As in nuPlan a
scenario begins 3 s before its tag. Thresholds follow the published one-line descriptions; where SUMO's traffic cannot
reach one, the rule says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radp.sources.sumo.surroundings import Surroundings

KINDS = (
    "starting_left_turn",
    "starting_right_turn",
    "starting_straight_traffic_light_intersection_traversal",
    "stopping_with_lead",
    "high_lateral_acceleration",
    "high_magnitude_speed",
    "low_magnitude_speed",
    "traversing_pickup_dropoff",
    "waiting_for_pedestrian_to_cross",
    "behind_long_vehicle",
    "stationary_in_traffic",
    "near_multiple_vehicles",
    "changing_lane",
    "following_lane_with_lead",
)
STEADY = 0.5  # [m/s^2] "low acceleration"
TURN_MEMORY = 15  # frames after a turn in which lateral acceleration still belongs to the turn
CHANGE_LEAD = 15  # frames between the start of a lane change and the moment its middle is on the new lane
INSTANT = frozenset(KINDS[:3]) | {"changing_lane"}  # the tag is the first frame; elsewhere any frame of a run may be it


@dataclass(frozen=True)
class EgoSeries:
    """One ego over n frames: speed, accelerations [SI], lane index, and what its connector is like."""

    speed: np.ndarray
    accel: np.ndarray
    lateral: np.ndarray
    lane: np.ndarray
    turn: np.ndarray  # (n,) str: direction letter of the connector, '' on lanes
    signal: np.ndarray  # (n,) bool: the connector has a light
    beside: np.ndarray  # (n,) bool: the lane is a neighbour of the previous frame's lane
    in_kerb_area: np.ndarray  # (n,) bool: in a pickup area where somebody stands
    around: Surroundings


def find_kinds(drive: EgoSeries) -> dict[str, np.ndarray]:
    """Kind -> mask (n,)."""
    around, v, a = drive.around, drive.speed, drive.accel
    entered = np.concatenate([[False], drive.lane[1:] != drive.lane[:-1]])
    left, right, straight = (np.isin(drive.turn, letters) for letters in (["l", "L"], ["r", "R"], ["s"]))
    turning = np.isin(drive.turn, ["l", "L", "r", "R", "t"])
    lately = np.convolve(turning, np.ones(TURN_MEMORY))[: len(turning)] > 0
    changing = np.roll(drive.beside, -CHANGE_LEAD)
    changing[-CHANGE_LEAD:] = False
    steady = np.abs(a) < STEADY
    masks = (
        entered & left,
        entered & right,
        entered & straight & drive.signal & (v > 0.5),
        (a < -0.6) & (v < 2.0) & (v > 0.05) & (around.lead_gap < 6.0),
        (np.abs(drive.lateral) > 1.5) & (np.abs(drive.lateral) < 3.0) & ~lately,
        (v > 9.0) & steady,
        (v > 0.3) & (v < 1.2) & steady,
        drive.in_kerb_area & (v > 0.5),
        (around.person_gap < 8.0) & (v > 0.05) & (v < 2.5),
        (around.lead_gap > 3.0) & (around.lead_gap < 10.0) & (around.lead_length > 8.0) & (around.lead_lateral < 0.5),
        (v < 0.1) & (around.near > 6),
        (v > 3.0) & (around.near_moving > 4),  # published: 6 m/s and more than 6
        changing & (v > 2.0),
        (v > 3.5) & (around.lead_speed > 3.5) & (around.lead_gap < 7.5) & (drive.turn == ""),
    )
    return dict(zip(KINDS, masks))


def tags(mask: np.ndarray, instant: bool, rng: np.random.Generator) -> list[int]:
    """One frame per run of true values: its first one, or any."""
    edges = np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8))
    runs = zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1))
    return [int(start if instant else rng.integers(start, end)) for start, end in runs]
