"""Scenarios that need no data: a signalised crossing with traffic that follows its lanes, its leaders and its lights.

The four arms have green one after the other, so that no two streams meet and the log is free of collisions.
"""

from __future__ import annotations

import numpy as np

from radp.road.road_map import RoadMap
from radp.scenario import DT, DT_US, PACIFICA, Box, Ego, LightState, ObjectType, Scenario, Tracks, TrafficLights
from radp.sources.synthetic.road import (
    ARMS,
    INBOUND,
    LANE_WIDTH,
    LANES,
    ROAD_LIMITS,
    TURNS,
    arm_poses,
    lane_name,
    make_map,
    route_blocks,
    shift_left,
    turn_block,
)
from radp.sources.synthetic.traffic import Chain, MadeTraffic, chain_poses, drive_traffic, light_lanes, make_chain

WARM_UP = 60  # frames driven before the log begins, so that the traffic has settled
GREEN, YELLOW, ALL_RED = 6.0, 1.5, 1.5  # seconds
EPOCH_US = 1_620_000_000_000_000
KINDS = {
    "left": "starting_left_turn",
    "right": "starting_right_turn",
    "straight": "starting_straight_traffic_light_intersection_traversal",
}
SPACING = 11.0  # between centres of vehicles of a lane when they are placed


def make_scenario(
    seed: int,
    agents: int = 30,
    pedestrians: int = 2,
    cones: int = 2,
    turn: str | None = None,
    history: int = 20,
    frames: int = 151,
) -> Scenario:
    """One drive through the crossing: `agents` vehicles placed around the ego, `history` frames before frame 0.

    `turn` is "left", "straight" or "right"; None takes them in turn with the seed. Same arguments, same scenario.
    """
    random = np.random.default_rng((seed, 20_210_503))
    turn = turn or tuple(TURNS)[seed % len(TURNS)]
    variant = (seed // len(TURNS)) % len(ROAD_LIMITS)
    road = make_map(variant)
    total = WARM_UP + history + frames
    lights = _lights(road, total, random.uniform(-5.0, 4.0) + (WARM_UP + history) * DT)
    traffic = _place(road, turn, agents, random)
    progress, speed = drive_traffic(road, traffic, lights, total)
    progress, speed, lights = progress[:, WARM_UP:], speed[:, WARM_UP:], lights[WARM_UP:]
    poses = [chain_poses(chain, progress[i]) for i, chain in enumerate(traffic.chains)]
    log = _ego_log(traffic.chains[0], progress[0], speed[0])
    vehicles = _vehicle_tracks(traffic, poses[1:], progress[1:], speed[1:])
    others = _roadside(variant, pedestrians, cones, history + frames, random)
    tracks = Tracks(
        ids=vehicles.ids + others.ids,
        type=np.concatenate((vehicles.type, others.type)),
        size=np.concatenate((vehicles.size, others.size)),
        state=np.concatenate((vehicles.state, others.state)),
        valid=np.concatenate((vehicles.valid, others.valid)),
    )
    return Scenario(
        token=f"synthetic_{seed:06d}",
        kind=KINDS[turn],
        source="synthetic",
        map=road,
        time_us=EPOCH_US + np.arange(history + frames, dtype=np.int64) * DT_US,
        ego=log,
        tracks=tracks,
        lights=TrafficLights(lane=light_lanes(road), state=lights),
        route=route_blocks(0, turn),
        goal=traffic.chains[0].pose(traffic.chains[0].length - 1.0),
        start=history,
        dt=DT,
    )


def _random_way(road: RoadMap, lane: int, random: np.random.Generator) -> list[int]:
    lanes = [lane]
    while len(road.successors[lanes[-1]]):
        lanes.append(int(random.choice(road.successors[lanes[-1]])))
    return lanes


def _ego_way(road: RoadMap, turn: str, lane: int) -> list[int]:
    lanes = [road.lane_index[lane_name(0, 1, INBOUND, lane)]]
    while len(after := road.successors[lanes[-1]]):
        wanted = [int(i) for i in after if road.roadblocks.ids[road.roadblock[i]] == turn_block(0, turn)]
        lanes.append(wanted[0] if wanted else int(after[0]))
    return lanes


def _place(road: RoadMap, turn: str, count: int, random: np.random.Generator) -> MadeTraffic:
    """The ego on the bent arm on its way to the crossing, and `count` vehicles around the crossing.

    Vehicles prefer lanes towards the crossing, where they stay near the ego; only one starts on the ego's own way
    before it, so that the ego gets through.
    """
    lane = {"left": 0, "right": 1}.get(turn, int(random.integers(LANES)))
    ego = make_chain(road, _ego_way(road, turn, lane))
    chains, progress, before = [ego], [ego.first[3] - random.uniform(55.0, 100.0)], 0
    crossing, slots = ego.pose(ego.first[3] + 10.0)[:2], []
    for i in (int(i) for i in np.flatnonzero(~road.is_connector)):
        single = make_chain(road, [i])
        s = np.arange(6.0, single.length - 6.0, 3.0)
        away = np.hypot(*(chain_poses(single, s)[:, :2] - crossing).T)
        leaves = 0.0 if any(len(road.lane_stop_lines[j]) for j in road.successors[i]) else 40.0
        slots += [(distance + leaves + random.uniform(0.0, 40.0), i, at) for distance, at in zip(away, s)]
    for _, i, at in sorted(slots):
        if len(chains) > count:
            break
        near = [p for chain, p in zip(chains[1:], progress[1:]) if chain.lanes[0] == i]
        from_ego = at + ego.first[ego.lanes == i] - progress[0]  # empty on lanes that the ego does not take
        ahead = bool((from_ego > 0).any())
        if any(abs(p - at) < SPACING for p in near) or (abs(from_ego) < SPACING).any() or (ahead and before):
            continue
        before += ahead
        chains.append(make_chain(road, _random_way(road, i, random)))
        progress.append(at)
    length = np.where(random.random(len(chains)) < 0.1, random.uniform(7.0, 9.0, len(chains)), 0.0)
    length = np.where(length > 0, length, random.uniform(4.0, 5.2, len(chains)))
    size = np.stack((length, random.uniform(1.8, 2.1, len(chains)), np.full(len(chains), 1.6)), 1)
    size[0] = PACIFICA.length, PACIFICA.width, PACIFICA.height
    return MadeTraffic(chains, np.array(progress), random.uniform(1.0, 5.0, len(chains)), size)


def _lights(road: RoadMap, frames: int, green_at: float) -> np.ndarray:
    """(T, C) LightState; the ego's arm turns green at `green_at` seconds, the others in turn after it."""
    phase = GREEN + YELLOW + ALL_RED
    arm = np.array([road.lane_stop_lines[lane][0] for lane in light_lanes(road)])
    since = (np.arange(frames)[:, None] * DT - green_at - arm * phase) % (ARMS * phase)
    state = np.where(since < GREEN, LightState.GREEN, LightState.RED)
    return np.where((since >= GREEN) & (since < GREEN + YELLOW), LightState.YELLOW, state).astype(np.uint8)


def _ego_log(chain: Chain, progress: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """(T, 11) states: the rear axle follows the way, the box centre is at `progress`."""
    log = np.zeros((len(progress), len(Ego)))
    poses = chain_poses(chain, progress - PACIFICA.rear_axle_to_center)
    log[:, Ego.X : Ego.HEADING + 1] = poses
    log[:, Ego.VX], log[:, Ego.AX] = speed, np.gradient(speed, DT)
    log[:, Ego.YAW_RATE] = np.gradient(poses[:, 2], DT)
    log[:, Ego.YAW_ACCEL] = np.gradient(log[:, Ego.YAW_RATE], DT)
    bend = np.divide(log[:, Ego.YAW_RATE], speed, out=np.zeros_like(speed), where=speed > 0.5)
    log[:, Ego.STEERING] = np.arctan(PACIFICA.wheel_base * bend)
    log[:, Ego.STEERING_RATE] = np.gradient(log[:, Ego.STEERING], DT)
    log[:, Ego.HEADING] = (poses[:, 2] + np.pi) % (2 * np.pi) - np.pi
    return log


def _vehicle_tracks(traffic: MadeTraffic, poses: list[np.ndarray], progress: np.ndarray, speed: np.ndarray) -> Tracks:
    """The vehicles but the ego; they are gone when they reach the end of their way."""
    count, frames = progress.shape
    ends = np.array([chain.length for chain in traffic.chains[1:]])
    valid = progress < ends[:, None]
    state = np.zeros((count, frames, len(Box)))
    for i, pose in enumerate(poses):
        state[i] = _box_states(pose, speed[i])
    state[~valid] = 0.0
    ids = tuple(f"v{i:03d}" for i in range(count))
    return Tracks(ids, np.full(count, ObjectType.VEHICLE, dtype=np.uint8), traffic.size[1:], state, valid)


def _box_states(poses: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """(T, 3) poses and (T,) speeds -> (T, 5) columns Box."""
    velocity = speed[:, None] * np.stack((np.cos(poses[:, 2]), np.sin(poses[:, 2])), 1)
    heading = (poses[:, 2] + np.pi) % (2 * np.pi) - np.pi
    return np.column_stack((poses[:, :2], heading, velocity))


def _roadside(variant: int, walkers: int, cones: int, frames: int, random: np.random.Generator) -> Tracks:
    """Pedestrians (every third one on a bicycle) that pass beside the road, and cones that stand there."""
    count, side = walkers + cones, LANES * LANE_WIDTH
    state, size = np.zeros((count, frames, len(Box))), np.zeros((count, 3))
    kinds = np.zeros(count, dtype=np.uint8)
    for i in range(count):
        arm, left = int(random.integers(1, ARMS)), float(random.choice((-1.0, 1.0)))
        rides, stands = i % 3 == 2, i >= walkers
        kinds[i] = ObjectType.TRAFFIC_CONE if stands else ObjectType.BICYCLE if rides else ObjectType.PEDESTRIAN
        size[i] = (0.4, 0.4, 0.7) if stands else (1.8, 0.6, 1.7) if rides else (0.6, 0.6, 1.7)
        speed = np.full(frames, 0.0 if stands else 4.0 if rides else random.uniform(0.9, 1.5))
        distance = random.uniform(5.0, 60.0) + np.cumsum(speed) * DT
        along = arm_poses(variant, arm, distance)
        # Each walks on a line of their own, so that nobody runs into another.
        points = shift_left(along, left * (side + (0.6 if stands else 2.0 + i)))
        state[i] = _box_states(np.column_stack((points, along[:, 2])), speed)
    ids = tuple(f"{'c' if i >= walkers else 'p'}{i:03d}" for i in range(count))
    return Tracks(ids, kinds, size, state, np.ones((count, frames), dtype=bool))
