"""The Scene: what a planner sees at one moment, as tensors in the Diffusion Planner layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import IntEnum
from typing import Any, TypeVar

import torch
from torch import Tensor

from radp.scenario.scenario import FIRST_STATIC_TYPE

POSE = slice(0, 4)  # x, y, cos, sin: the first four columns of ego, agents and static objects
XY = slice(0, 2)
COS_SIN = slice(2, 4)


class EgoColumn(IntEnum):
    """Columns of `ego_current_state`."""

    X = 0
    Y = 1
    COS = 2
    SIN = 3
    VX = 4
    VY = 5
    AX = 6
    AY = 7
    STEERING = 8
    YAW_RATE = 9


class AgentColumn(IntEnum):
    """Columns of `neighbor_agents_past`; note that width stands before length."""

    X = 0
    Y = 1
    COS = 2
    SIN = 3
    VX = 4
    VY = 5
    WIDTH = 6
    LENGTH = 7
    IS_VEHICLE = 8
    IS_PEDESTRIAN = 9
    IS_BICYCLE = 10


class StaticColumn(IntEnum):
    """Columns of `static_objects`; note that width stands before length."""

    X = 0
    Y = 1
    COS = 2
    SIN = 3
    WIDTH = 4
    LENGTH = 5
    IS_SIGN = 6
    IS_BARRIER = 7
    IS_CONE = 8
    IS_GENERIC = 9


class LaneColumn(IntEnum):
    """Columns of `lanes` and `route_lanes`; the boundaries are given relative to the centre point."""

    X = 0
    Y = 1
    DX = 2
    DY = 3
    LEFT_X = 4
    LEFT_Y = 5
    RIGHT_X = 6
    RIGHT_Y = 7
    IS_GREEN = 8
    IS_YELLOW = 9
    IS_RED = 10
    IS_UNKNOWN = 11


class ObjectColumn(IntEnum):
    """Columns of `RuleView.objects`."""

    X = 0
    Y = 1
    COS = 2
    SIN = 3
    VX = 4
    VY = 5
    LENGTH = 6
    WIDTH = 7


class FutureColumn(IntEnum):
    """Columns of the futures, one row for each 0.1 s, the first at 0.1 s."""

    X = 0
    Y = 1
    HEADING = 2


AGENT_VELOCITY = slice(AgentColumn.VX, AgentColumn.WIDTH)
AGENT_TYPE = slice(AgentColumn.IS_VEHICLE, AgentColumn.IS_BICYCLE + 1)
AGENT_CONTINUOUS = slice(0, AgentColumn.IS_VEHICLE)
OBJECT_MOTION = slice(0, ObjectColumn.LENGTH)
OBJECT_VELOCITY = slice(ObjectColumn.VX, ObjectColumn.LENGTH)
OBJECT_SIZE = slice(ObjectColumn.LENGTH, ObjectColumn.WIDTH + 1)
LANE_GEOMETRY = slice(0, LaneColumn.IS_GREEN)
LANE_LIGHT = slice(LaneColumn.IS_GREEN, LaneColumn.IS_UNKNOWN + 1)

TRAILING_SHAPES: dict[str, tuple[int | None, ...]] = {
    "ego_current_state": (len(EgoColumn),),
    "neighbor_agents_past": (None, None, len(AgentColumn)),
    "static_objects": (None, len(StaticColumn)),
    "lanes": (None, None, len(LaneColumn)),
    "lanes_speed_limit": (None, 1),
    "lanes_has_speed_limit": (None, 1),
    "route_lanes": (None, None, len(LaneColumn)),
    "route_lanes_speed_limit": (None, 1),
    "route_lanes_has_speed_limit": (None, 1),
    "ego_agent_future": (None, len(FutureColumn)),
    "neighbor_agents_future": (None, None, len(FutureColumn)),
}
FUTURE_FIELDS = ("ego_agent_future", "neighbor_agents_future")
INPUT_FIELDS = tuple(name for name in TRAILING_SHAPES if name not in FUTURE_FIELDS)
BOOL_FIELDS = ("lanes_has_speed_limit", "route_lanes_has_speed_limit")


Record = TypeVar("Record")


def map_tensors(record: Record, change: Callable[[Tensor], Tensor]) -> Record:
    """The dataclass with every tensor in it changed, those of dataclasses inside it too."""
    changed: dict[str, Any] = {}
    for field in fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if isinstance(value, Tensor):
            changed[field.name] = change(value)
        elif is_dataclass(value):
            changed[field.name] = map_tensors(value, change)
    return replace(record, **changed)  # type: ignore[type-var]


@dataclass(frozen=True)
class RoadView:
    """What the rules of the road look at beside the route, of B moments, in the ego frames; m, s. Zeros: not there.

    N objects as in `RuleView.objects`, L lanes nearest first whatever their direction, S pieces of the border.
    """

    object_types: Tensor  # (B, N)  int64 ObjectType
    object_past: Tensor  # (B, N, 2)  where each object was 2 s ago, or when it was first seen
    object_crossing: Tensor  # (B, N, 3)  where the route meets the crosswalk that it walks on, x, y; seconds it takes
    lanes: Tensor  # (B, L, 20, 4)  x, y of the centre line; metres to the left and to the right border
    border: Tensor | None = None  # (B, S, 4)  from x, y to x, y, drivable on the left; None: not known
    border_reach: Tensor | None = None  # (B, 1)  metres around the ego within which all of the border is there

    @staticmethod
    def of(scene: Scene) -> RoadView | None:
        """The scene's own, or, if its rules see what the model sees, as much as that holds; else None."""
        if scene.rules is not None:
            return scene.rules.road
        past, still, lanes = scene.neighbor_agents_past, scene.static_objects, scene.lanes
        types = past[:, :, -1, AGENT_TYPE].argmax(-1)
        static = torch.full(still.shape[:2], FIRST_STATIC_TYPE, dtype=types.dtype, device=types.device)
        left, right = (lanes[..., i : i + 2].norm(dim=-1) for i in (LaneColumn.LEFT_X, LaneColumn.RIGHT_X))
        objects = past.shape[1] + still.shape[1]
        return RoadView(
            object_types=torch.cat((types, static), 1),
            object_past=torch.cat((past[:, :, 0, XY], still[..., XY]), 1),
            object_crossing=past.new_zeros(len(past), objects, 3),
            lanes=torch.cat((lanes[..., XY], torch.stack((left, right), -1)), -1),
        )


@dataclass(frozen=True)
class RuleView:
    """What the rules look at of B moments, in the ego frames of their Scene; m, m/s. A row of zeros is a missing row.

    N objects: road users, then static ones, in each part nearest first. R lanes of the route, side by side and ahead.
    """

    objects: Tensor  # (B, N, 8)  ObjectColumn, now
    road_users: int  # rows of them that are for road users
    route_lanes: Tensor  # (B, R, 20, 12)  LaneColumn
    route_lanes_speed_limit: Tensor  # (B, R, 1)  m/s, 0 where unknown
    route_lanes_has_speed_limit: Tensor  # (B, R, 1)  bool
    route_links: Tensor | None = None  # (B, R, R)  bool: by the map, route lane j follows route lane i
    object_tracks: Tensor | None = None  # (B, N)  int64, the track that each object is; -1: nobody
    object_futures: Tensor | None = None  # (B, F, T, 3)  FutureColumn, of the first F objects
    road: RoadView | None = None

    @staticmethod
    def of(scene: Scene) -> RuleView:
        """The scene's own, or, if it has none, what the model sees."""
        if scene.rules is not None:
            return scene.rules
        now, still = scene.neighbor_agents_past[:, :, -1], scene.static_objects
        columns = [*range(AgentColumn.WIDTH), AgentColumn.LENGTH, AgentColumn.WIDTH]
        size = still[..., [StaticColumn.LENGTH, StaticColumn.WIDTH]]
        standing = torch.cat((still[..., POSE], torch.zeros_like(size), size), -1)
        return RuleView(
            objects=torch.cat((now[..., columns], standing), 1),
            road_users=now.shape[1],
            route_lanes=scene.route_lanes,
            route_lanes_speed_limit=scene.route_lanes_speed_limit,
            route_lanes_has_speed_limit=scene.route_lanes_has_speed_limit,
            object_futures=scene.neighbor_agents_future,
        )


@dataclass(frozen=True)
class Scene:
    """B moments. Ego frame at t=0 (origin rear axle, x forward, y left); m, rad, m/s; float32, flags bool.

    Sizes in the published layout: A=32 agents, S=5 static objects, L=70 lanes, R=25 route lanes,
    21 steps of history at 10 Hz (last = now), 20 points a lane, T=80 future steps at 10 Hz.
    A row of zeros is a missing row. Agents and static objects are given by their box centre.
    The last three fields are not of that layout and stand in no file: who the agents are, what rules look at, and how
    much each rule is to count.

    >>> scene = radp.build_scenes(radp.observe(radp.open_split("sumo14-val")[:1]))
    >>> tuple(scene.lanes.shape), scene.lanes_has_speed_limit.dtype
    ((1, 70, 20, 12), torch.bool)
    """

    ego_current_state: Tensor  # (B, 10)  EgoColumn
    neighbor_agents_past: Tensor  # (B, A, 21, 11)  AgentColumn, nearest first
    static_objects: Tensor  # (B, S, 10)  StaticColumn, nearest first
    lanes: Tensor  # (B, L, 20, 12)  LaneColumn, nearest first
    lanes_speed_limit: Tensor  # (B, L, 1)  m/s, 0 where unknown
    lanes_has_speed_limit: Tensor  # (B, L, 1)  bool
    route_lanes: Tensor  # (B, R, 20, 12)  LaneColumn
    route_lanes_speed_limit: Tensor  # (B, R, 1)  m/s, 0 where unknown
    route_lanes_has_speed_limit: Tensor  # (B, R, 1)  bool
    ego_agent_future: Tensor | None = None  # (B, T, 3)  FutureColumn, rear axle
    neighbor_agents_future: Tensor | None = None  # (B, N, T, 3)  FutureColumn, rows as in the past, N <= A
    agent_tracks: Tensor | None = None  # (B, A)  int64, the track of the log or world that each agent is; -1: nobody
    rules: RuleView | None = None
    rule_weights: Tensor | None = None  # (B, W)  log-weights of the rules that the model names; None: the default

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """The fields of the published layout that are present, by name, in declaration order."""
        for name in TRAILING_SHAPES:
            value = getattr(self, name)
            if value is not None:
                yield name, value

    @property
    def batch_size(self) -> int:
        return self.ego_current_state.shape[0]

    def __len__(self) -> int:
        return self.batch_size

    def __getitem__(self, index: int | slice | Tensor | Sequence[int]) -> Scene:
        """Pick samples along the batch axis; the batch axis stays, also for a single int."""
        if isinstance(index, int):
            if not -len(self) <= index < len(self):
                raise IndexError(f"sample {index} of a scene with batch size {len(self)}")
            index = slice(index, index + 1 or None)
        elif not isinstance(index, slice):
            index = torch.as_tensor(index, device=self.ego_current_state.device)
        return map_tensors(self, lambda value: value[index])

    def to(self, device: torch.device | str) -> Scene:
        return map_tensors(self, lambda value: value.to(device))

    def pin_memory(self) -> Scene:
        return map_tensors(self, lambda value: value.pin_memory())

    def without_future(self) -> Scene:
        return replace(self, ego_agent_future=None, neighbor_agents_future=None)

    def repeat_interleave(self, times: int) -> Scene:
        """Each sample `times` times in a row: batch B becomes B * times."""
        return map_tensors(self, lambda value: value.repeat_interleave(times, 0))

    def crop(self, agents: int, static_objects: int, lanes: int, route_lanes: int) -> Scene:
        """Keep the first rows of each kind (they are sorted by distance); never pads."""
        keep = {
            "neighbor_agents_past": agents,
            "neighbor_agents_future": agents,
            "agent_tracks": agents,
            "static_objects": static_objects,
            "lanes": lanes,
            "lanes_speed_limit": lanes,
            "lanes_has_speed_limit": lanes,
            "route_lanes": route_lanes,
            "route_lanes_speed_limit": route_lanes,
            "route_lanes_has_speed_limit": route_lanes,
        }
        rows = {name: getattr(self, name) for name in keep}
        return replace(self, **{name: value[:, : keep[name]] for name, value in rows.items() if value is not None})

    @staticmethod
    def cat(scenes: Sequence[Scene]) -> Scene:
        """Join along the batch axis; all scenes must carry the same fields. Tracks stay where all scenes know them."""
        if not scenes:
            raise ValueError("Scene.cat needs at least one scene")
        if any(scene.agent_tracks is None for scene in scenes):
            scenes = [replace(scene, agent_tracks=None) for scene in scenes]
        return _cat(scenes)

    def validate(self) -> Scene:
        """Check shapes, types and finiteness; raise one ValueError that lists every fault. Returns self."""
        faults = [fault for name, value in self.items() for fault in self._faults(name, value)]
        if not faults:
            faults = list(self._row_faults())
        if faults:
            raise ValueError("bad scene: " + "; ".join(faults))
        return self

    def _faults(self, name: str, value: Tensor) -> Iterator[str]:
        trailing = TRAILING_SHAPES[name]
        wanted_type = torch.bool if name in BOOL_FIELDS else torch.float32
        if value.dtype != wanted_type:
            yield f"{name} is {value.dtype}, expected {wanted_type}"
        fits = value.dim() == len(trailing) + 1 and all(
            size is None or size == actual for size, actual in zip(trailing, value.shape[1:])
        )
        if not fits or value.shape[0] != self.batch_size:
            wanted = ", ".join("*" if size is None else str(size) for size in trailing)
            yield f"{name} has shape {tuple(value.shape)}, expected ({self.batch_size}, {wanted})"
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            yield f"{name} holds values that are not finite"

    def _row_faults(self) -> Iterator[str]:
        for lanes in ("lanes", "route_lanes"):
            rows = getattr(self, lanes).shape[1]
            for limit in (f"{lanes}_speed_limit", f"{lanes}_has_speed_limit"):
                if getattr(self, limit).shape[1] != rows:
                    yield f"{limit} has {getattr(self, limit).shape[1]} rows, {lanes} has {rows}"
        agents, future = self.neighbor_agents_past.shape[1], self.neighbor_agents_future
        if future is not None and future.shape[1] > agents:
            yield f"neighbor_agents_future has {future.shape[1]} rows, neighbor_agents_past only {agents}"
        if self.agent_tracks is not None and self.agent_tracks.shape != (self.batch_size, agents):
            yield f"agent_tracks has shape {tuple(self.agent_tracks.shape)}, expected ({self.batch_size}, {agents})"


def _cat(records: Sequence[Record]) -> Record:
    """Join dataclasses of tensors along the batch axis, field by field."""
    joined: dict[str, Any] = {}
    for field in fields(records[0]):  # type: ignore[arg-type]
        values = [getattr(record, field.name) for record in records]
        if any((value is None) != (values[0] is None) for value in values):
            raise ValueError(f"Scene.cat: some scenes carry {field.name} and some do not")
        if isinstance(values[0], Tensor):
            joined[field.name] = torch.cat(values)
        elif is_dataclass(values[0]):
            joined[field.name] = _cat(values)
    return replace(records[0], **joined)  # type: ignore[type-var]


def present(rows: Tensor) -> Tensor:
    """(..., C) -> (...) bool: True where a row is not padding, i.e. has any non-zero column."""
    return (rows != 0).any(-1)
