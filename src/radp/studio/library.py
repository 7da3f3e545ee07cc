"""The scenarios of a studio: of a split, a store, a file or a run, and those that the page brought along."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import Run
from radp.incidents.words import MOST_LEVEL
from radp.metrics.drive import box_centers
from radp.report.viewer.pack import ANGLE_STEP, Grid, pack
from radp.report.viewer.road import RoadPicture, crop_road
from radp.report.viewer.words import kind_words
from radp.runs.errors import BadInput
from radp.runs.folder import RUN
from radp.scenario import PACIFICA, Ego, ObjectType, Scenario
from radp.scenario.neutral_json import scenario_from_json
from radp.scenario.splits import open_split
from radp.sim.driven_log import driven_log

REACH = 120.0  # m around the drive that are shown
MARGIN = 350.0  # m around it that plans and forecasts may reach
SCENERIES_KEPT = 8
MOST_BROUGHT = 50
LINES = ("road", "route", "crosswalks", "stop_lines", "edges", "dividers", "connectors")


@dataclass(frozen=True)
class Scenery:
    """A scenario with its place on the page."""

    scenario: Scenario
    grid: Grid
    road: RoadPicture

    @property
    def origin(self) -> np.ndarray:
        """(2,) the page's origin in the world."""
        return self.grid.origin

    def lights(self, scenario: Scenario, samples: int) -> np.ndarray:
        """(samples, C) what the drawn lights of an edited version show from its start on."""
        frames = np.minimum(scenario.start + np.arange(samples), len(scenario.lights.state) - 1)
        return scenario.lights.state[frames][:, self.road.light_columns]

    def page(self) -> dict[str, Any]:
        """JSON-ready: what does not change while the scenario is edited."""
        scenario, goal = self.scenario, self.scenario.goal
        return {
            "token": scenario.token,
            "kind": kind_words(scenario.kind),
            "source": scenario.source,
            "step": self.grid.step,
            "angle": ANGLE_STEP,
            "dt": scenario.dt,
            "rate": 1.0 / scenario.dt,
            "most": MOST_LEVEL,
            "samples": scenario.frames - 1,
            "car": [PACIFICA.length, PACIFICA.width],
            "types": [kind.name.lower().replace("_", " ") for kind in ObjectType],
            "expert": pack(self.grid.positions(box_centers(scenario.ego[scenario.start :]))),
            "goal": None if goal is None else self.grid.positions(goal[:2]).tolist(),
            "columns": self.road.light_columns.tolist(),
            "road": {
                **{name: self.grid.pack_lines(getattr(self.road, name)) for name in LINES},
                "bars": pack(self.grid.positions(self.road.light_bars.reshape(-1, 2))),
                "lights": pack(self.lights(scenario, 1)),
            },
        }


def scenery_of(scenario: Scenario) -> Scenery:
    """Everything near the logged drive."""
    path = scenario.ego[scenario.start :, : Ego.HEADING]
    return Scenery(scenario, Grid.around(path, MARGIN), crop_road(scenario, [path], REACH))


class Library:
    """Scenarios by number. Those of a run are shown as they were driven, others as they were logged."""

    def __init__(self, name_or_path: str, allow_missing: bool = False) -> None:
        self.run = Run.open(name_or_path) if RUN.is_in(Path(name_or_path)) else None
        self.split = open_split(name_or_path, allow_missing) if self.run is None else self.run.split
        if not len(self.split):
            raise BadInput(f"{name_or_path} holds no scenarios")
        self._entries = [
            {"token": token, "kind": kind_words(kind)}
            for token, kind in zip(self.split.tokens(), self.split.kind_of_each())
        ]
        self._brought: list[Scenario] = []
        self._lock = RLock()  # several requests may come at the same time
        self._sceneries: OrderedDict[int, Scenery] = OrderedDict()

    def entries(self) -> list[dict[str, str]]:
        """token and kind of each."""
        return list(self._entries)

    def bring(self, data: dict[str, Any]) -> int:
        """Take in a scenario in neutral JSON -> its number."""
        if len(self._brought) >= MOST_BROUGHT:
            raise BadInput(f"{MOST_BROUGHT} scenarios were loaded already; start the studio again")
        scenario = scenario_from_json(data, "the file")
        with self._lock:
            self._brought.append(scenario)
            self._entries.append({"token": scenario.token, "kind": kind_words(scenario.kind)})
            return len(self._entries) - 1

    def scenery(self, number: int) -> Scenery:
        """The scenario of a number; the last few are remembered."""
        if not 0 <= number < len(self._entries):
            raise BadInput(f"scenario is {number}, expected 0 to {len(self._entries) - 1}")
        with self._lock:
            if number not in self._sceneries:
                self._sceneries[number] = scenery_of(self._read(number))
                if len(self._sceneries) > SCENERIES_KEPT:
                    self._sceneries.popitem(last=False)
            self._sceneries.move_to_end(number)
            return self._sceneries[number]

    def _read(self, number: int) -> Scenario:
        if number >= len(self.split):
            return self._brought[number - len(self.split)]
        scenario = self.split[number]
        if self.run is None or scenario.token not in self.run.store:
            return scenario
        drive = self.run.store.read(scenario)
        return driven_log(drive) if len(drive.time_us) > 2 else scenario
