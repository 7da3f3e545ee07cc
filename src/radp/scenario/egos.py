"""The last word on a converted log: who is the ego, what is its route, and two seconds of history."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from radp.road.arrays import road_arrays
from radp.road.match import match_lanes, thin_path
from radp.runs.errors import BadInput
from radp.scenario import ObjectType, Scenario, Tracks, TrafficLights
from radp.scenario.as_ego import (
    MIN_ON_ROAD,
    MIN_TRAVEL,
    as_ego,
    ego_from_track,
    longest_run,
    possible_egos,
    route_of_path,
)
from radp.scenario.history import with_history
from radp.scenario.recording import NoEgo, Recording

SDC, ALL, PROBLEM = "sdc", "all", "problem"
MOST_NAMED = 20  # candidates that a complaint names
STANDING = 2.0  # m that an ego which stands may move in all
TURN = 0.5  # rad


def choose_egos(log: Scenario | Recording, ego: str = SDC) -> Iterator[Scenario]:
    """A log -> one scenario per ego, each with a route, a kind and at least 2 s of history.

    sdc: the car that recorded. all: that car and every vehicle that is tracked from the start of the drive to its end,
    drives 5 m or more and stays on lanes. problem: a planning problem, which the source itself has made an ego. Else
    the id of a track that is a vehicle with a full track.
    A route that the source does not know is the chain of roadblocks under the ego's own way, which then goes straight
    on for 200 m, so that it does not tell where the log ends. NoEgo says why nobody is left.
    """
    seen = _from_recording(log, ego) if isinstance(log, Recording) else _from_scenario(log, ego)
    found = False
    for scenario in seen:
        found = True
        yield with_history(scenario)
    if not found:
        raise NoEgo(why_nobody(log, ego))


def why_nobody(log: Scenario | Recording, ego: str) -> str:
    """One sentence on the vehicles of a log, none of which became an ego."""
    vehicles = [int(i) for i in np.flatnonzero(log.tracks.type == ObjectType.VEHICLE)]
    if ego != ALL:
        return f"log {log.token!r} has no track {ego!r}"
    full = [i for i in vehicles if _is_full(longest_run(log.tracks.valid[i]), log)]
    moving = [i for i in full if _travel(log, i) >= MIN_TRAVEL]
    each = [f"{log.tracks.ids[i]} {_why_not(log, i)}" for i in vehicles[:MOST_NAMED]]
    more = [f"and {len(vehicles) - MOST_NAMED} more"] if len(vehicles) > MOST_NAMED else []
    return (
        f"log {log.token!r}: of {len(vehicles)} vehicles {len(vehicles) - len(full)} are not there from start to end, "
        f"{len(full) - len(moving)} drive less than {MIN_TRAVEL:g} m, {len(moving)} leave the lanes"
        f"{': ' if each else ''}{'; '.join((*each, *more))}"
    )


def _why_not(log: Scenario | Recording, track: int) -> str:
    """Why a vehicle of a log is no ego."""
    window, last = longest_run(log.tracks.valid[track]), len(log.time_us) - 1
    if not _is_full(window, log):
        return f"is there in frames {window.start} to {window.stop - 1}, not {log.start} to {last}"
    travel = _travel(log, track)
    return f"drives {travel:.1f} m" if travel < MIN_TRAVEL else "leaves the lanes"


def _travel(log: Scenario | Recording, track: int) -> float:
    """m that a track moves in the drive."""
    return float(np.hypot(*np.diff(log.tracks.state[track, log.start :, :2], axis=0).T).sum())


def _from_scenario(scenario: Scenario, ego: str) -> Iterator[Scenario]:
    """A source that has an ego of its own."""
    if ego in (SDC, ALL, PROBLEM):
        yield scenario
    if ego == ALL:
        for name in possible_egos(scenario, scenario.frames):
            if _is_full(longest_run(scenario.tracks.valid[scenario.tracks.ids.index(name)]), scenario):
                yield as_ego(scenario, name)
    elif ego != SDC and ego in scenario.tracks.ids:
        if not _is_full(longest_run(scenario.tracks.valid[scenario.tracks.ids.index(ego)]), scenario):
            raise BadInput(f"scenario {scenario.token!r}: track {ego!r} is not there from start to end")
        yield as_ego(scenario, ego)


def _from_recording(log: Recording, ego: str) -> Iterator[Scenario]:
    if ego == SDC and log.sdc is None:
        raise BadInput(f"log {log.token!r} was recorded from outside: choose --ego all or the id of a vehicle")
    names = [log.sdc] if log.sdc is not None and ego in (SDC, ALL) else []
    if ego == ALL:
        names += [name for name in log.tracks.ids if name != log.sdc and _is_worth_it(log, name)]
    elif ego != SDC and ego in log.tracks.ids:
        names = [ego]
    for name in names:
        yield seen_from(log, name)


def _is_full(window: slice, log: Scenario | Recording) -> bool:
    """Whether a track is there in every frame of the drive."""
    return window.start <= log.start and window.stop == len(log.time_us)


def _is_worth_it(log: Recording, name: str) -> bool:
    """A vehicle with a full track that drives, on lanes."""
    track = log.tracks.ids.index(name)
    if log.tracks.type[track] != ObjectType.VEHICLE or not _is_full(longest_run(log.tracks.valid[track]), log):
        return False
    if _travel(log, track) < MIN_TRAVEL:
        return False
    thinned = thin_path(log.tracks.state[track, log.start :, :3])
    return len(match_lanes(road_arrays(log.map), thinned)) >= MIN_ON_ROAD * len(thinned)


def seen_from(log: Recording, name: str) -> Scenario:
    """The log with one of its vehicles as the ego; BadInput where that vehicle is not there from start to end."""
    track = log.tracks.ids.index(name)
    if log.tracks.type[track] != ObjectType.VEHICLE:
        kind = ObjectType(log.tracks.type[track]).name
        raise BadInput(f"log {log.token!r}: track {name!r} is a {kind}, only a VEHICLE can be the ego")
    window = longest_run(log.tracks.valid[track])
    if not _is_full(window, log):
        raise BadInput(f"log {log.token!r}: track {name!r} is not there from start to end")
    boxes, time_us = log.tracks.state[track, window], log.time_us[window]
    start = log.start - window.start
    route, goal = route_of_path(log.map, boxes[start:, :3])
    keep = np.arange(len(log.tracks)) != track
    tracks = Tracks(
        ids=tuple(other for other in log.tracks.ids if other != name),
        type=log.tracks.type[keep],
        size=log.tracks.size[keep],
        state=log.tracks.state[keep, window],
        valid=log.tracks.valid[keep, window],
    )
    return Scenario(
        token=log.token if name == log.sdc else f"{log.token}:{name}",
        kind=kind_of_path(boxes[start:]),
        source=log.source,
        map=log.map,
        time_us=time_us,
        ego=ego_from_track(boxes, log.tracks.size[track], time_us),
        tracks=tracks,
        lights=TrafficLights(log.lights.lane, log.lights.state[window]),
        route=route,
        goal=goal,
        start=start,
        dt=log.dt,
        tags={**log.tags, "ego": name},
    )


def kind_of_path(boxes: np.ndarray) -> str:
    """boxes (T, 5) of a drive -> standing, left_turn, right_turn or straight."""
    if np.hypot(*np.diff(boxes[:, :2], axis=0).T).sum() < STANDING:
        return "standing"
    turned = float(np.unwrap(boxes[:, 2])[-1] - boxes[0, 2])
    return "straight" if abs(turned) < TURN else "left_turn" if turned > 0 else "right_turn"
