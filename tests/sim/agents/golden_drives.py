"""The published program's closed-loop drives: the scenario, the ego's states and the agents it met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radp.scenario import Scenario, Tracks
from radp.scenario.neutral_json import load_json, scenario_from_json, states_from_json, tracks_from_json
from tests.shared_data import NUPLAN_GOLDEN, shared_files


@dataclass(frozen=True)
class GoldenDrive:
    scenario: Scenario
    time_us: np.ndarray  # (S,)
    ego: np.ndarray  # (S, 11)
    agents: Tracks  # over the S samples
    tie_sensitive: bool

    @property
    def dt(self) -> np.ndarray:
        """(S - 1,) s, as a difference of float seconds."""
        return np.diff(self.time_us / 1e6)


def golden_drives(model: str) -> list:
    """One pytest parameter per drive with agents `model` (idm or log) in files of any name, or a skipped one."""
    drives: list[tuple[str, Callable[[], GoldenDrive]]] = []
    for path in shared_files(f"golden/nuplan/closed_loop/*__{model}_*.json.gz"):
        if not path.name.endswith(".result.json.gz"):
            drives.append((path.name.split(".")[0], lambda path=path: _from_closed_loop(path)))
    for path in shared_files("golden/nuplan/files/*/expected.json.gz"):
        drives.append((path.parent.name, lambda path=path: _from_files(path, f"{model}_expert")))
    if not drives:
        return [pytest.param(None, marks=pytest.mark.skip(reason="skipped: no shared data"))]
    return [pytest.param(load, id=name) for name, load in drives]


def _from_closed_loop(path: Path) -> GoldenDrive:
    name = path.name.split(".")[0]
    scenario = scenario_from_json(load_json(path.with_name(f"{name.split('__')[0]}.scenario.json.gz")))
    case = load_json(NUPLAN_GOLDEN / "golden.json")["cases"].get(name, {})
    return _drive(scenario, load_json(path), bool(case.get("tie_sensitive")))


def _from_files(path: Path, run: str) -> GoldenDrive:
    data = load_json(path)
    return _drive(scenario_from_json(data["scenario"]), data["runs"][run], False)


def _drive(scenario: Scenario, run: dict[str, Any], tie_sensitive: bool) -> GoldenDrive:
    time_us, ego = states_from_json(run["ego"])
    agents = run["agents"]
    tracks = scenario.tracks if isinstance(agents, str) else tracks_from_json(agents, len(time_us))
    window = slice(0, len(time_us))
    seen = Tracks(tracks.ids, tracks.type, tracks.size, tracks.state[:, window], tracks.valid[:, window])
    return GoldenDrive(scenario, time_us, ego, seen, tie_sensitive)
