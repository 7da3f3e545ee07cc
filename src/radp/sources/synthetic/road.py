"""A road made by formula: four arms of two lanes each way that meet in a signalised crossing; the first arm bends.

Every arm has an inner and an outer section joined by short links, so that lanes follow connectors and connectors
follow lanes as in nuPlan. Arms are counted counter-clockwise; seen from arm a, the exits are a+1 right, a+2 straight,
a+3 left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from radp.geometry.ragged import Polygons, Ragged
from radp.road.road_map import Areas, RoadMap

LANE_WIDTH = 3.5
LANES = 2  # each way
MOUTH = 14.0  # from the middle of the crossing to the end of an arm
SECTIONS = ((0.0, 90.0), (100.0, 230.0))  # inner and outer section: distances from the mouth; the gap is the link
POINT_SPACING = 2.0
ORIGIN = np.array([331_000.0, 4_691_000.0])  # as large as UTM coordinates are
INBOUND, OUTBOUND = 0, 1
ARMS = 4
TURNS = {"right": 1, "straight": 2, "left": 3}  # name -> exit arm minus entry arm
TURN_LIMIT = {"right": 5.0, "straight": 0.0, "left": 7.0}  # m/s; 0 = as the road
ROAD_LIMITS = (11.0, 13.4, 13.4, 15.6)  # by variant, m/s
BENDS = (1 / 90.0, -1 / 120.0, 1 / 150.0, -1 / 70.0)  # curvature of the bent arm by variant, 1/m
BEND_FROM, BEND_LENGTH = 40.0, 90.0


@dataclass(frozen=True)
class Strip:
    """A lane or connector: centre line, borders (P, 2) in driving direction, and its place in the graph."""

    name: str
    block: str
    lines: tuple[np.ndarray, np.ndarray, np.ndarray]  # centre, left, right
    limit: float
    successors: tuple[str, ...] = ()
    connector: bool = False
    stop_line: str | None = None


def lane_name(arm: int, section: int, direction: int, lane: int) -> str:
    """Id of a lane; lane 0 is the leftmost."""
    return f"{lane_block(arm, section, direction)}{lane + 1}"


def lane_block(arm: int, section: int, direction: int) -> str:
    """Id of the roadblock of a section and direction."""
    return str(10 + 4 * arm + 2 * section + direction)


def link_block(arm: int, direction: int) -> str:
    """Id of the roadblock of the links of an arm."""
    return str(40 + 2 * arm + direction)


def turn_block(arm: int, turn: str) -> str:
    """Id of the roadblock of the connectors that enter the crossing from an arm."""
    return str(60 + 4 * arm + TURNS[turn])


def route_blocks(arm: int, turn: str) -> tuple[str, ...]:
    """Roadblocks of a drive from the outer end of an arm through the crossing to the outer end of another one."""
    out = (arm + TURNS[turn]) % ARMS
    return (
        lane_block(arm, 1, INBOUND), link_block(arm, INBOUND), lane_block(arm, 0, INBOUND), turn_block(arm, turn),
        lane_block(out, 0, OUTBOUND), link_block(out, OUTBOUND), lane_block(out, 1, OUTBOUND),
    )  # fmt: skip


def arm_poses(variant: int, arm: int, distance: np.ndarray) -> np.ndarray:
    """(S,) metres outward from the mouth -> (S, 3) pose of the arm's middle line, heading outward."""
    heading = 0.3 + 0.7 * variant + arm * math.pi / 2
    bend = BENDS[variant] if arm == 0 else 0.0
    step = 0.05
    fine = np.arange(-MOUTH, SECTIONS[1][1] + step, step)  # from the middle of the crossing
    turned = heading + bend * np.clip(fine + step / 2 - BEND_FROM, 0.0, BEND_LENGTH)  # heading at mid-steps
    x = np.concatenate(([0.0], np.cumsum(step * np.cos(turned))))[:-1]
    y = np.concatenate(([0.0], np.cumsum(step * np.sin(turned))))[:-1]
    out = heading + bend * np.clip(distance - BEND_FROM, 0.0, BEND_LENGTH)
    return np.stack((np.interp(distance, fine, x), np.interp(distance, fine, y), out), 1)


def shift_left(poses: np.ndarray, distance: float) -> np.ndarray:
    """(S, 3) poses -> (S, 2) points `distance` to their left, in world coordinates."""
    normal = np.stack((-np.sin(poses[:, 2]), np.cos(poses[:, 2])), 1)
    return ORIGIN + poses[:, :2] + distance * normal


def _strip_lines(poses: np.ndarray, offset: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre, left and right line of a lane whose centre is `offset` to the left of the poses."""
    half = LANE_WIDTH / 2
    return shift_left(poses, offset), shift_left(poses, offset + half), shift_left(poses, offset - half)


def _section_poses(variant: int, arm: int, lo: float, hi: float, direction: int) -> np.ndarray:
    """Poses of the middle line between two distances, in driving direction."""
    distance = np.linspace(lo, hi, max(2, round((hi - lo) / POINT_SPACING) + 1))
    poses = arm_poses(variant, arm, distance)
    if direction == INBOUND:
        poses = poses[::-1] + np.array([0.0, 0.0, math.pi])
    return poses


def _turn_poses(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Poses (P, 3) of a cubic curve between two poses (3,), evenly spaced."""
    handle = 0.3905 * math.hypot(*(end[:2] - start[:2]))  # a quarter of a circle when the legs are equal
    a, d = start[:2], end[:2]
    b = a + handle * np.array([math.cos(start[2]), math.sin(start[2])])
    c = d - handle * np.array([math.cos(end[2]), math.sin(end[2])])
    t = np.linspace(0.0, 1.0, 400)[:, None]
    points = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
    speed = 3 * (1 - t) ** 2 * (b - a) + 6 * (1 - t) * t * (c - b) + 3 * t**2 * (d - c)
    heading = np.unwrap(np.arctan2(speed[:, 1], speed[:, 0]))
    length = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))))
    even = np.linspace(0.0, length[-1], max(8, round(length[-1] / 1.0)))
    return np.stack([np.interp(even, length, column) for column in (points[:, 0], points[:, 1], heading)], 1)


def _lanes_of_arm(variant: int, arm: int) -> list[Strip]:
    """Lanes of both sections and directions."""
    strips = []
    for section, (lo, hi) in enumerate(SECTIONS):
        for direction in (INBOUND, OUTBOUND):
            poses = _section_poses(variant, arm, lo, hi, direction)
            for lane in range(LANES):
                block, lines = lane_block(arm, section, direction), _strip_lines(poses, -(lane + 0.5) * LANE_WIDTH)
                after = _after_lane(arm, section, direction, lane)
                strips.append(Strip(f"{block}{lane + 1}", block, lines, ROAD_LIMITS[variant], after))
    return strips


def _after_lane(arm: int, section: int, direction: int, lane: int) -> tuple[str, ...]:
    """The connectors that follow a lane: those through the crossing, the link, or nothing at the outer end."""
    if section != direction:
        return (f"{link_block(arm, direction)}{lane + 1}",)
    if direction == INBOUND:
        return tuple(_turn_name(arm, turn, lane) for turn in TURNS if _allowed(turn, lane))
    return ()


def _links_of_arm(variant: int, arm: int) -> list[Strip]:
    strips = []
    for direction in (INBOUND, OUTBOUND):
        poses = _section_poses(variant, arm, SECTIONS[0][1], SECTIONS[1][0], direction)
        for lane in range(LANES):
            after = lane_name(arm, 0 if direction == INBOUND else 1, direction, lane)
            lines = _strip_lines(poses, -(lane + 0.5) * LANE_WIDTH)
            block = link_block(arm, direction)
            strips.append(Strip(f"{block}{lane + 1}", block, lines, ROAD_LIMITS[variant], (after,), connector=True))
    return strips


def _allowed(turn: str, lane: int) -> bool:
    """Left turns start in the leftmost lane, right turns in the rightmost."""
    return turn == "straight" or (turn == "left") == (lane == 0)


def _turn_name(arm: int, turn: str, lane: int) -> str:
    return f"{turn_block(arm, turn)}{lane + 1}"


def _turns_of_arm(variant: int, arm: int) -> list[Strip]:
    """Connectors from an arm through the crossing."""
    strips = []
    entry = arm_poses(variant, arm, np.zeros(1)) + np.array([0.0, 0.0, math.pi])
    for turn, shift in TURNS.items():
        out = (arm + shift) % ARMS
        exit_ = arm_poses(variant, out, np.zeros(1))
        for lane in (lane for lane in range(LANES) if _allowed(turn, lane)):
            side = -(lane + 0.5) * LANE_WIDTH
            ends = [np.array([*(shift_left(pose, side) - ORIGIN)[0], pose[0, 2]]) for pose in (entry, exit_)]
            lines = _strip_lines(_turn_poses(*ends), 0.0)
            limit = TURN_LIMIT[turn] or ROAD_LIMITS[variant]
            after = (lane_name(out, 0, OUTBOUND, lane),)
            strips.append(
                Strip(_turn_name(arm, turn, lane), turn_block(arm, turn), lines, limit, after, True, str(900 + arm))
            )
    return strips


def _band(variant: int, arm: int, lo: float, hi: float, right: float, left: float) -> np.ndarray:
    """Ring of the part of an arm between two distances and two sideways offsets."""
    poses = _section_poses(variant, arm, lo, hi, OUTBOUND)
    return np.concatenate((shift_left(poses, left), shift_left(poses, right)[::-1]))


def _areas(variant: int) -> dict[str, Areas]:
    """Crossing and links, road surface, stop lines and crosswalks."""
    half = LANES * LANE_WIDTH
    mouths = [_band(variant, arm, 0.0, 1.0, -half, half) for arm in range(ARMS)]
    crossing = np.concatenate([np.stack((ring[-1], ring[0])) for ring in mouths])
    links = [_band(variant, arm, SECTIONS[0][1], SECTIONS[1][0], -half, half) for arm in range(ARMS)]
    road = [_band(variant, arm, 0.0, SECTIONS[1][1], -half, half) for arm in range(ARMS)]
    # The stop line reaches over the mouth, so that it touches the connectors it belongs to.
    stops = [_band(variant, arm, -1.0, 0.5, 0.0, half) for arm in range(ARMS)]
    walks = [_band(variant, arm, -5.0, -2.0, -half, half) for arm in range(ARMS)]

    def named(first: int, rings: list[np.ndarray]) -> Areas:
        return Areas(tuple(str(first + i) for i in range(len(rings))), Polygons.from_exteriors(rings))

    return {
        "intersections": named(700, [crossing, *links]),
        "drivable": named(800, road),
        "stop_lines": named(900, stops),
        "crosswalks": named(950, walks),
    }


@lru_cache(maxsize=len(BENDS))
def make_map(variant: int) -> RoadMap:
    """The map number `variant` (0..3): the maps differ in bend, turn of the whole and speed limit."""
    strips = [s for arm in range(ARMS) for s in _lanes_of_arm(variant, arm)]
    strips += [s for arm in range(ARMS) for s in _links_of_arm(variant, arm)]
    strips += [s for arm in range(ARMS) for s in _turns_of_arm(variant, arm)]
    position = {strip.name: i for i, strip in enumerate(strips)}
    successors = [[position[name] for name in strip.successors] for strip in strips]
    predecessors: list[list[int]] = [[] for _ in strips]
    for i, row in enumerate(successors):
        for j in row:
            predecessors[j].append(i)
    blocks = list(dict.fromkeys(strip.block for strip in strips))
    members = [[i for i, strip in enumerate(strips) if strip.block == block] for block in blocks]
    # Members of a block lie side by side, the leftmost first: its area is the outer left and outer right border.
    block_rings = [np.concatenate((strips[m[0]].lines[1], strips[m[-1]].lines[2][::-1])) for m in members]
    left = np.array([-1 if s.connector or s.name[-1] == "1" else i - 1 for i, s in enumerate(strips)], dtype=np.int64)
    right = np.full(len(strips), -1, dtype=np.int64)
    right[left[left >= 0]] = np.flatnonzero(left >= 0)
    areas = _areas(variant)
    stop_rows = [[] if s.stop_line is None else [areas["stop_lines"].index[s.stop_line]] for s in strips]
    lines = [Ragged.from_rows([strip.lines[k] for strip in strips], width=2) for k in range(3)]
    return RoadMap(
        lane_ids=tuple(position),
        is_connector=np.array([strip.connector for strip in strips]),
        centerlines=lines[0],
        left=lines[1],
        right=lines[2],
        lane_polygons=Polygons.from_exteriors([np.concatenate((s.lines[1], s.lines[2][::-1])) for s in strips]),
        speed_limit=np.array([strip.limit for strip in strips]),
        has_speed_limit=np.ones(len(strips), dtype=bool),
        predecessors=Ragged.from_rows(predecessors, dtype=np.int64),
        successors=Ragged.from_rows(successors, dtype=np.int64),
        left_neighbor=left,
        right_neighbor=right,
        roadblock=np.array([blocks.index(strip.block) for strip in strips], dtype=np.int64),
        lane_stop_lines=Ragged.from_rows(stop_rows, dtype=np.int64),
        roadblocks=Areas(tuple(blocks), Polygons.from_exteriors(block_rings)),
        name=f"synthetic-{variant}",
        **areas,
    )
