"""The last word on a converted log: who is the ego, what is its route, and two seconds of history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from radp.runs.errors import BadInput
from radp.scenario import Scenario
from radp.scenario.history import with_history
from radp.scene.as_ego import as_ego, longest_run, possible_egos, route_of_path

SDC, ALL = "sdc", "all"


def choose_egos(scenario: Scenario, ego: str = SDC) -> Iterator[Scenario]:
    """A log -> one scenario per ego, each with a route and at least 2 s of history.

    sdc: the logged ego. all: the logged ego and every vehicle that is tracked from the start of the drive to its end,
    drives 5 m or more and stays on lanes. Else the id of a track that is a vehicle with a full track.
    A route that the source does not know is the chain of roadblocks under the ego's own way, which then goes straight
    on for 200 m, so that it does not tell where the log ends.
    """
    for seen in _seen_from(scenario, ego):
        yield with_history(_with_route(seen))


def _seen_from(scenario: Scenario, ego: str) -> Iterator[Scenario]:
    if ego in (SDC, ALL):
        yield scenario
    if ego == ALL:
        for name in possible_egos(scenario, scenario.frames):
            if has_full_track(scenario, name):
                yield as_ego(scenario, name)
    elif ego != SDC:
        if ego not in scenario.tracks.ids:
            return
        if not has_full_track(scenario, ego):
            raise BadInput(f"scenario {scenario.token!r}: track {ego!r} is not there from start to end")
        yield as_ego(scenario, ego)


def has_full_track(scenario: Scenario, name: str) -> bool:
    """Whether a track is there in every frame of the drive."""
    window = longest_run(scenario.tracks.valid[scenario.tracks.ids.index(name)])
    return window.start <= scenario.start and window.stop == len(scenario.time_us)


def _with_route(scenario: Scenario) -> Scenario:
    if scenario.route or not len(scenario.map):
        return scenario
    route, goal = route_of_path(scenario.map, scenario.ego[scenario.start :, :3])
    return replace(scenario, route=route, goal=goal)
