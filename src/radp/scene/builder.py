"""From what the world shows, or from a log, to Scenes: world frame float64 in, ego frame float32 out.

Each moment is computed for itself, whatever stands beside it in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from radp.road.arrays import road_arrays
from radp.road.lane_lines import LANE_POINTS, LaneTable, lane_lines, lane_table
from radp.road.route import correct_route
from radp.scenario import PACIFICA, Ego, RoadMap, Scenario
from radp.scene.agents import NOBODY, STATIC_COLUMNS, write_futures, write_objects, write_rule_objects
from radp.scene.lanes import (
    Lights,
    choose_lanes,
    light_columns,
    route_rows,
    write_lanes,
    write_links,
    write_route_line,
)
from radp.scene.road import LANE_LENGTH, fill_road, fill_road_objects, road_shapes
from radp.scene.scene import (
    AgentColumn,
    EgoColumn,
    FutureColumn,
    LaneColumn,
    ObjectColumn,
    RoadView,
    RuleView,
    Scene,
    StaticColumn,
)
from radp.sim.observation import HISTORY, Observation
from radp.sim.plan import STEP_SECONDS

FUTURE = 80  # steps of 0.1 s
SHORTEST_FUTURE = 40  # of these, what imitation of a drive that ends needs: augmentation rejoins the log at 2.1 s
STEP_TOLERANCE = 0.01  # s by which the mean step of a log may differ from a plan's
SLOW = 0.2  # m/s below which steering and yaw rate count as 0
MAX_YAW_RATE = 0.95  # rad/s
MAX_STEERING = 2 * np.pi / 3


@dataclass(frozen=True)
class SceneConfig:
    """Sizes and choices of a Scene; the defaults are those of the published Diffusion Planner."""

    agents: int = 32
    walkers: int = 10  # pedestrians and bicycles that keep their place when there are too many agents
    static_objects: int = 5
    lanes: int = 70
    route_lanes: int = 25
    radius: float = 100.0  # m around the rear axle in which lanes are taken
    lane_length: float | None = None  # m: longer lanes are cut into equal parts; None = never, as published
    yellow_is_unknown: bool = True  # the published encoder never says yellow
    ego_dynamics: bool = False  # build_scenes only: fill in speed etc. where the published planner passes zeros
    route_order: Literal["lanes", "driving"] = "lanes"  # lanes by distance, or one line in driving order
    route_spacing: float = 2.0  # m between the points of the line in driving order
    route_pieces: int = 3  # 20-point pieces of that line
    neighbor_futures: int = 32  # rows of neighbor_agents_future
    rules: bool = False  # add what the rules look at, whatever the sizes above: `Scene.rules`
    road: bool = False  # with `rules`: what the rules of the road look at, too: `Scene.rules.road`


PUBLISHED = SceneConfig()
# What rules look at. All route lanes, so that the corridor spans lanes side by side; long ones cut, so that 20 points
# follow their bends.
RULE_SCENES = SceneConfig(route_order="lanes", ego_dynamics=True, lane_length=LANE_LENGTH)
# That alone, for planners that need no scenes.
RULES_ALONE = replace(RULE_SCENES, agents=0, static_objects=0, lanes=0, route_lanes=0, neighbor_futures=0, rules=True)


@dataclass(frozen=True)
class Moment:
    """What one Scene is made of; world frame. k <= 21 frames up to now, f >= 0 frames after it, A objects."""

    road_map: RoadMap
    pose: np.ndarray  # (3,) rear axle
    states: np.ndarray  # (k, A, 5) columns Box
    valid: np.ndarray  # (k, A)
    types: np.ndarray  # (A,)
    sizes: np.ndarray  # (A, 3) length, width, height
    light_lanes: np.ndarray  # (C,)
    light_states: np.ndarray  # (C,)
    route: np.ndarray  # (m,) corrected roadblocks
    skip: int = NOBODY  # object that is the ego itself
    future_states: np.ndarray | None = None  # (f, A, 5)
    future_valid: np.ndarray | None = None  # (f, A)


def build_scenes(observation: Observation, config: SceneConfig = PUBLISHED) -> Scene:
    """B worlds -> Scene of B moments without future.

    >>> scene = radp.build_scenes(radp.observe(radp.open_split("sumo14-val")[:2]))
    >>> len(scene), tuple(scene.route_lanes.shape)
    (2, (2, 25, 20, 12))
    """
    arrays = empty_arrays(len(observation), config)
    for b, briefing in enumerate(observation.briefings):
        pose = np.ascontiguousarray(observation.ego[b, -1, :3])
        light_lanes, light_states = observation.lights(b)
        moment = Moment(
            road_map=briefing.map,
            pose=pose,
            states=observation.agents[b],
            valid=observation.agent_valid[b],
            types=observation.agent_type[b],
            sizes=observation.agent_size[b],
            light_lanes=light_lanes,
            light_states=light_states,
            route=correct_route(briefing.map, briefing.route, pose),
        )
        fill(arrays, b, moment, config)
        if config.ego_dynamics:
            before = observation.ego[b, -2] if observation.ego_valid[b, -2] else observation.ego[b, -1]
            arrays["ego_current_state"][b] = ego_state(before, observation.ego[b, -1])
    return to_scene(arrays)


def scenes_from_log(
    scenario: Scenario,
    frames: Sequence[int],
    config: SceneConfig = PUBLISHED,
    with_future: bool = True,
    short_future: Literal["refuse", "zeros"] = "refuse",
) -> Scene:
    """Frames of a log (counted from its first one) -> Scene of as many moments, as training wants them.

    A log that ends before 8 s are over is refused, or leaves rows of zeros; `future_steps` counts the steps there are.
    """
    check_step(scenario)
    faults = [f for f in frames if not 0 <= f < len(scenario.time_us)]
    if faults:
        raise ValueError(f"scenario {scenario.token!r} has no frame {faults[0]}, only 0..{len(scenario.time_us) - 1}")
    if with_future and short_future == "refuse" and len(frames) and future_steps(scenario, frames).min() < FUTURE:
        raise ValueError(
            f"scenario {scenario.token!r}: frame {max(frames)} has fewer than {FUTURE} frames after it; "
            "leave it out or set short_future to 'zeros'"
        )
    arrays = empty_arrays(len(frames), config, with_future)
    for b, frame in enumerate(frames):
        fill(arrays, b, moment_of_log(scenario, frame, with_future), config)
        arrays["ego_current_state"][b] = ego_state(scenario.ego[max(0, frame - 1)], scenario.ego[frame])
        if with_future:
            future = ego_future(scenario.ego, frame)
            arrays["ego_agent_future"][b, : len(future)] = future
    return to_scene(arrays)


def check_step(scenario: Scenario) -> None:
    """Raise ValueError unless the log has ten frames a second."""
    if len(scenario.time_us) < 2:
        return
    step = (scenario.time_us[-1] - scenario.time_us[0]) / 1e6 / (len(scenario.time_us) - 1)
    if abs(step - STEP_SECONDS) > STEP_TOLERANCE:
        raise ValueError(f"scenario {scenario.token!r}: frames are {step:.3f} s apart, scenes need {STEP_SECONDS} s")


def future_steps(scenario: Scenario, frames: Sequence[int]) -> np.ndarray:
    """(n,) frames -> (n,) how many of the 80 future steps the log has."""
    return np.clip(len(scenario.time_us) - 1 - np.asarray(frames, dtype=np.int64), 0, FUTURE)


def moment_of_log(scenario: Scenario, frame: int, with_future: bool = True) -> Moment:
    """The moment at a frame of the log, the logged ego being the ego."""
    states, valid = scenario.tracks.state.transpose(1, 0, 2), scenario.tracks.valid.T
    past, after = slice(max(0, frame - HISTORY + 1), frame + 1), slice(frame + 1, frame + 1 + FUTURE)
    pose = np.ascontiguousarray(scenario.ego[frame, :3])
    return Moment(
        road_map=scenario.map,
        pose=pose,
        states=states[past],
        valid=valid[past],
        types=scenario.tracks.type,
        sizes=scenario.tracks.size,
        light_lanes=scenario.lights.lane,
        light_states=scenario.lights.state[frame],
        route=correct_route(scenario.map, scenario.route, pose),
        future_states=states[after] if with_future else None,
        future_valid=valid[after] if with_future else None,
    )


def ego_state(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Ego states (11,) of the frame before and of now -> (10,) ego_current_state as training uses it, float32."""
    state = np.zeros(len(EgoColumn), dtype=np.float32)
    state[EgoColumn.COS] = 1.0
    state[EgoColumn.VX : EgoColumn.AY + 1] = now[Ego.VX : Ego.AY + 1]
    speed = abs(now[Ego.VX])
    if speed >= SLOW:
        turned = (now[Ego.HEADING] - before[Ego.HEADING] + np.pi) % (2 * np.pi) - np.pi
        yaw_rate = np.clip(turned / STEP_SECONDS, -MAX_YAW_RATE, MAX_YAW_RATE)
        state[EgoColumn.YAW_RATE] = yaw_rate
        steering = np.arctan(yaw_rate * PACIFICA.wheel_base / speed)
        state[EgoColumn.STEERING] = np.clip(steering, -MAX_STEERING, MAX_STEERING)
    return state


def ego_future(ego: np.ndarray, frame: int) -> np.ndarray:
    """ego (T, 11), frame -> (n <= 80, 3) x, y, heading after the frame, in its ego frame, float64."""
    gap = ego[frame + 1 : frame + 1 + FUTURE, :3] - ego[frame, :3]
    c, s = np.cos(ego[frame, Ego.HEADING]), np.sin(ego[frame, Ego.HEADING])
    turned = (gap[:, 2] + np.pi) % (2 * np.pi) - np.pi
    return np.stack((c * gap[:, 0] + s * gap[:, 1], c * gap[:, 1] - s * gap[:, 0], turned), 1)


def empty_arrays(batch: int, config: SceneConfig, with_future: bool = False) -> dict[str, np.ndarray]:
    """A Scene of nothing: all rows missing, the ego at the origin as the published planner passes it."""
    lane = (LANE_POINTS, len(LaneColumn))
    shapes: dict[str, tuple[int, ...]] = {
        "ego_current_state": (len(EgoColumn),),
        "neighbor_agents_past": (config.agents, HISTORY, len(AgentColumn)),
        "agent_tracks": (config.agents,),
        "static_objects": (config.static_objects, len(StaticColumn)),
        "lanes": (config.lanes, *lane),
        "lanes_speed_limit": (config.lanes, 1),
        "lanes_has_speed_limit": (config.lanes, 1),
        "route_lanes": (config.route_lanes, *lane),
        "route_lanes_speed_limit": (config.route_lanes, 1),
        "route_lanes_has_speed_limit": (config.route_lanes, 1),
    }
    if config.rules:
        objects, route = RULE_SCENES.agents + RULE_SCENES.static_objects, RULE_SCENES.route_lanes
        shapes |= {
            "rules.objects": (objects, len(ObjectColumn)),
            "rules.object_tracks": (objects,),
            "rules.route_lanes": (route, *lane),
            "rules.route_lanes_speed_limit": (route, 1),
            "rules.route_lanes_has_speed_limit": (route, 1),
            "rules.route_links": (route, route),
        }
        if config.road:
            shapes |= road_shapes(objects)
    if with_future:
        future = (FUTURE, len(FutureColumn))
        shapes |= {"ego_agent_future": future, "neighbor_agents_future": (config.neighbor_futures, *future)}
        if config.rules:
            shapes["rules.object_futures"] = (RULE_SCENES.neighbor_futures, *future)
    arrays = {name: _empty(name, (batch, *shape)) for name, shape in shapes.items()}
    arrays["ego_current_state"][:, EgoColumn.COS] = 1.0
    return arrays


def _empty(name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name.endswith("tracks"):
        return np.full(shape, NOBODY, dtype=np.int64)
    if name.endswith("types"):
        return np.zeros(shape, dtype=np.int64)
    return np.zeros(shape, dtype=bool if name.endswith(("has_speed_limit", "links")) else np.float32)


def fill(arrays: dict[str, np.ndarray], b: int, moment: Moment, config: SceneConfig) -> None:
    """Write everything but the ego's own state and future into row b."""
    rows = {name: array[b] for name, array in arrays.items()}
    _fill_objects(rows, moment, config)
    if len(moment.road_map):
        _fill_lanes(rows, moment, config)


def _fill_objects(rows: dict[str, np.ndarray], moment: Moment, config: SceneConfig) -> None:
    pose, types, sizes = moment.pose, moment.types, moment.sizes
    states, valid = np.ascontiguousarray(moment.states), np.ascontiguousarray(moment.valid)  # kernels compiled once
    chosen, moving, standing = write_objects(
        states, valid, types, sizes, STATIC_COLUMNS, moment.skip, config.walkers, pose,
        rows["neighbor_agents_past"], rows["agent_tracks"], rows["static_objects"],
    )  # fmt: skip
    futures = [("neighbor_agents_future", chosen)]
    if config.rules:
        judged = write_rule_objects(
            moving, standing, states[-1], types, sizes, RULE_SCENES.walkers, RULE_SCENES.agents, pose,
            rows["rules.objects"], rows["rules.object_tracks"],
        )  # fmt: skip
        futures.append(("rules.object_futures", judged))
        if config.road:
            fill_road_objects(rows, states, valid, types, pose)
    if moment.future_states is not None and moment.future_valid is not None:
        for name, who in futures:
            write_futures(who, moment.future_states, moment.future_valid, pose, rows[name])


def _fill_lanes(rows: dict[str, np.ndarray], moment: Moment, config: SceneConfig) -> None:
    table = lane_table(moment.road_map, config.lane_length)
    shared = config.rules and _same_choice(config, RULE_SCENES)
    lanes = _choose(table, moment, config, max(config.lanes, RULE_SCENES.lanes) if shared else config.lanes)
    mine, lights = lanes[: config.lanes], _lights(moment, config)
    write_lanes(mine, table, lights, moment.pose, *_lane_rows(rows, "lanes"))
    if config.route_order == "driving":
        road, lines, out = road_arrays(moment.road_map), lane_lines(moment.road_map), _lane_rows(rows, "route_lanes")
        spacing, pieces = config.route_spacing, config.route_pieces
        write_route_line(road.graph, lines, moment.route, moment.pose, lights, spacing, pieces, *out)
    else:
        on_route = route_rows(mine, table.roadblock, moment.route, config.route_lanes)
        for target, source in zip(_lane_rows(rows, "route_lanes"), _lane_rows(rows, "lanes")):
            target[: len(on_route)] = source[on_route]
    if not config.rules:
        return
    if not shared:
        table = lane_table(moment.road_map, RULE_SCENES.lane_length)
        lanes = _choose(table, moment, RULE_SCENES, RULE_SCENES.lanes)
    near = lanes[: RULE_SCENES.lanes]
    on_route = near[route_rows(near, table.roadblock, moment.route, RULE_SCENES.route_lanes)]
    write_lanes(on_route, table, _lights(moment, RULE_SCENES), moment.pose, *_lane_rows(rows, "rules.route_lanes"))
    write_links(on_route, table.lane, road_arrays(moment.road_map).graph, rows["rules.route_links"])
    if config.road:
        fill_road(rows, moment.road_map, table, near, on_route, moment.states[-1], moment.pose)


def _same_choice(a: SceneConfig, b: SceneConfig) -> bool:
    """Whether lanes are chosen from the same ones, so that the fewer are the first of the more."""
    return (a.lane_length, a.radius) == (b.lane_length, b.radius)


def _choose(table: LaneTable, moment: Moment, config: SceneConfig, most: int) -> np.ndarray:
    return choose_lanes(table, moment.pose[0], moment.pose[1], config.radius, most)


def _lights(moment: Moment, config: SceneConfig) -> Lights:
    return Lights(moment.light_lanes, moment.light_states, light_columns(config.yellow_is_unknown))


def _lane_rows(rows: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """The arrays of lanes of this name: points, speed limits, whether there is one."""
    return [rows[name], rows[f"{name}_speed_limit"], rows[f"{name}_has_speed_limit"]]


def to_scene(arrays: dict[str, np.ndarray]) -> Scene:
    """Arrays of `empty_arrays` -> Scene on the same memory."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    road = _taken(tensors, "rules.road.")
    view = _taken(tensors, "rules.")
    beside = RoadView(**road) if road else None
    rules = RuleView(road_users=RULE_SCENES.agents, road=beside, **view) if view else None
    return Scene(**tensors, rules=rules)


def _taken(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    """What has this prefix, without it; it is taken out of `tensors`."""
    return {name.removeprefix(prefix): tensors.pop(name) for name in list(tensors) if name.startswith(prefix)}
