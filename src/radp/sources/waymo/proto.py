"""Waymo Open Motion as Waymo publishes it: TFRecord files of Scenario messages, with lane graph, limits and lights.

The fields are those of waymo_open_dataset/protos/scenario.proto and map.proto, read by number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from radp.scenario import LightState, ObjectType, Tracks, TrafficLights
from radp.scenario.recording import Recording, no_lights, usual_start
from radp.sources.convert import REBUILT, UNKNOWN, FileItem, Refused, SourceError
from radp.sources.limits import MOST_TFRECORD_BYTES
from radp.sources.log_files import find_logs, read_bytes, reading
from radp.sources.roads import BuiltRoad, LaneDraft, RoadDraft, build_road, clean_line, clean_ring
from radp.sources.settings import LogChoice
from radp.sources.sound import room_for, speed_limit
from radp.sources.waymo.wire import Message, double, doubles, fields, integer, integers, messages, records, single

TYPES = {1: ObjectType.VEHICLE, 2: ObjectType.PEDESTRIAN, 3: ObjectType.BICYCLE}
STOP, CAUTION, GO = (1, 4, 7), (2, 5, 8), (3, 6)  # arrow, plain, flashing
BIKE_LANE = 3
MPH = 0.44704
MOST_SECONDS = 1e12  # of a time stamp; beyond it microseconds leave 64 bits


@dataclass(frozen=True)
class WaymoProto:
    """Source of Waymo's own files; a record that is no Scenario is refused."""

    name: str = "waymo-proto"

    def items(self, options: LogChoice) -> list[FileItem]:
        return find_logs(options, ("",), lambda path: ".tfrecord" in path.name)

    def scenarios(self, item: FileItem) -> Iterator[Recording | Refused]:
        name = item.path.name
        with reading(name, "records"):
            found = list(records(read_bytes(item.path, MOST_TFRECORD_BYTES)))
        for position, record in enumerate(found):
            try:
                with reading(name, f"record {position}"):
                    log = read_scenario(record, name)
                yield log
            except SourceError as error:
                yield Refused(f"{item.name}#{position}", str(error))


WAYMO_PROTO = WaymoProto()


def read_scenario(record: bytes, name: str) -> Recording:
    """One Scenario message; SourceError where it is something else."""
    with reading(name, "record"):
        scenario = fields(record)
        if not {1, 2, 5, 8} <= set(scenario):
            raise SourceError(f"{name}: a record is no Scenario message (tf.Example records are not read)")
        token = b"".join(v for v in scenario.get(5, ())[-1:] if isinstance(v, bytes)).decode("ascii", "strict")
        seconds = doubles(scenario, 1)
        if not len(seconds) or not (np.abs(seconds) < MOST_SECONDS).all():
            raise ValueError("timestamps_seconds are missing or no seconds of any date")
    with reading(name, f"scenario {token}: tracks"):
        tracks = read_tracks(messages(scenario, 2), len(seconds))
        index = integer(scenario, 6)
        if not 0 <= index < len(tracks):
            raise ValueError(f"sdc_track_index is {index}, expected 0..{len(tracks) - 1}")
        sdc = tracks.ids[index]
    with reading(name, f"scenario {token}: map_features"):
        states = [messages(moment, 1) for moment in messages(scenario, 7)]
        road = build_road(read_draft(messages(scenario, 8), states, token))
    with reading(name, f"scenario {token}: dynamic_map_states"):
        lights = read_lights(states, road, len(seconds))
    return Recording(
        token=token,
        source="waymo",
        map=road.map,
        time_us=np.round((seconds - seconds[0]) * 1e6).astype(np.int64),
        tracks=tracks,
        lights=lights,
        sdc=sdc,
        start=min(integer(scenario, 10) or usual_start(len(seconds)), len(seconds) // 2),
        tags={
            REBUILT: ", ".join((*road.rebuilt, "route")),
            UNKNOWN: ", ".join((*road.unknown, *(() if len(lights.lane) else ("traffic lights",)))),
        },
    )


def read_tracks(rows: list[Message], frames: int) -> Tracks:
    """All tracks; sizes are medians over the valid frames."""
    room_for(len(rows), frames)
    state, valid = np.zeros((len(rows), frames, 5)), np.zeros((len(rows), frames), dtype=bool)
    size = np.ones((len(rows), 3))
    for i, row in enumerate(rows):
        sizes = []
        for frame, one in enumerate(messages(row, 3)[:frames]):
            if integer(one, 11):
                box = (double(one, 2), double(one, 3), single(one, 8), single(one, 9), single(one, 10))
                valid[i, frame] = np.isfinite(box).all()
                state[i, frame] = box if valid[i, frame] else 0.0
                sizes.append([single(one, number) for number in (5, 6, 7)])
        if sizes:
            size[i] = np.median(sizes, axis=0)
    kinds = [TYPES.get(integer(row, 2), ObjectType.GENERIC_OBJECT) for row in rows]
    return Tracks(tuple(str(integer(row, 1)) for row in rows), np.array(kinds, dtype=np.uint8), size, state, valid)


def read_draft(features: list[Message], states: list[list[Message]], token: str) -> RoadDraft:
    """All map features; those without a usable geometry are passed over."""
    draft = RoadDraft(token)
    for feature in features:
        for number, line_field in ((3, 8), (4, 2), (5, 2), (8, 1), (10, 1)):
            for one in messages(feature, number):
                points = [(double(p, 1), double(p, 2)) for p in messages(one, line_field)]
                shape = clean_ring(points) if number in (8, 10) else clean_line(points)
                if shape is None or (number == 3 and integer(one, 2) == BIKE_LANE):
                    continue
                if number == 3:
                    draft.add(_lane(str(integer(feature, 1)), shape, one))
                else:
                    into = {4: draft.lines, 5: draft.edges, 8: draft.crosswalks, 10: draft.surfaces}
                    into[number].append(shape)
    for moment in states:
        for light in moment:
            draft.stops.setdefault(str(integer(light, 1)), np.zeros(2))
    return draft


def _lane(name: str, center: np.ndarray, lane: Message) -> LaneDraft:
    after = tuple(str(other) for other in integers(lane, 10))
    limit = speed_limit(double(lane, 1) * MPH)
    return LaneDraft(name, center, successors=after, connector=bool(integer(lane, 3)), speed_limit=limit)


def read_lights(states: list[list[Message]], road: BuiltRoad, frames: int) -> TrafficLights:
    """Lights of lanes that the map has; moments in which a light was not seen are UNKNOWN."""
    index = road.map.lane_index
    seen = {str(integer(light, 1)): None for moment in states for light in moment}
    lanes = {name: column for column, name in enumerate(name for name in seen if name in index)}
    if not lanes:
        return no_lights(frames)
    state = np.full((frames, len(lanes)), int(LightState.UNKNOWN), dtype=np.uint8)
    for frame, moment in enumerate(states[:frames]):
        for light in moment:
            name, word = str(integer(light, 1)), integer(light, 2)
            if name in index:
                known = ((STOP, LightState.RED), (CAUTION, LightState.YELLOW), (GO, LightState.GREEN))
                state[frame, lanes[name]] = next((s for words, s in known if word in words), LightState.UNKNOWN)
    return TrafficLights(np.array([index[name] for name in lanes], dtype=np.int64), state)
