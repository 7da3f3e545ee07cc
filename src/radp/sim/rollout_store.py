"""Drives on disk: one file per finished scenario, written whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from radp.scenario import Box, Scenario, Tracks
from radp.sim.rollout import Rollout, logged_agents
from radp.storage.errors import StoreError
from radp.storage.keyed import RecordFolder

SUFFIX = ".drive"
LEVEL = 3  # of compression: drives are written faster than they could be squeezed
NOBODY = Tracks((), np.zeros(0, np.uint8), np.zeros((0, 3)), np.zeros((0, 0, len(Box))), np.zeros((0, 0), bool))


@dataclass(frozen=True)
class _Stored:
    """A Rollout without its scenario, in fields that have blobs."""

    token: str
    agent_mode: str
    planner: str
    failure: str  # empty: none
    seed: np.ndarray  # (1,)
    time_us: np.ndarray
    ego: np.ndarray
    agents: Tracks  # NOBODY where they are the log's, which the scenario has
    plans: np.ndarray | None
    pressures: np.ndarray | None
    predictions: np.ndarray | None = None
    agent_shares: np.ndarray | None = None
    exact_pressures: np.ndarray | None = None
    rule_costs: np.ndarray | None = None
    rules: tuple[str, ...] = ()
    predicted_tracks: np.ndarray | None = None
    share_tracks: np.ndarray | None = None
    seam_shares: np.ndarray | None = None

    @classmethod
    def of(cls, rollout: Rollout) -> _Stored:
        """Everything but the scenario, of which only the token is kept."""
        values = {field.name: getattr(rollout, field.name) for field in fields(cls) if field.name != "token"}
        own: dict[str, Any] = {"failure": rollout.failure or "", "seed": np.array([rollout.seed], dtype=np.int64)}
        if rollout.agent_mode == "nonreactive":
            own["agents"] = NOBODY
        return cls(token=rollout.scenario.token, **{**values, **own})

    def rollout(self, scenario: Scenario) -> Rollout:
        """The inverse, with the scenario that was driven."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "token"}
        own: dict[str, Any] = {"failure": self.failure or None, "seed": int(self.seed[0]), "rules": self.rules or ()}
        if self.agent_mode == "nonreactive":
            own["agents"] = logged_agents(scenario, len(self.ego))
        return Rollout(scenario=scenario, **{**values, **own})


class RolloutStore:
    """A folder of drives by token. Several processes may write to it at the same time."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._files = RecordFolder(self.path, _Stored, SUFFIX, LEVEL)

    def clean(self) -> None:
        """Make the folder and remove what killed writers left behind; call it before writing starts."""
        self._files.clean()

    def path_of(self, token: str) -> Path:
        return self._files.file(token)

    def __contains__(self, token: str) -> bool:
        """Whether the scenario is finished."""
        return token in self._files

    def write(self, rollout: Rollout) -> None:
        """LostWrite if it cannot be kept."""
        self._files.write(rollout.scenario.token, _Stored.of(rollout))

    def read(self, scenario: Scenario) -> Rollout:
        """StoreError if it is missing, damaged or of another scenario."""
        wanted = scenario.token
        try:
            stored = self._files.read(wanted)
        except StoreError as error:
            again = "; delete it to drive the scenario again" if wanted in self else ""
            raise StoreError(f"{error}{again}") from None
        if stored.token != wanted:
            raise StoreError(f"{self.path_of(wanted)} holds a drive of scenario {stored.token!r}, expected {wanted!r}")
        try:
            rollout = stored.rollout(scenario)
            rollout.validate()
        except (ValueError, TypeError, IndexError) as error:
            file = self.path_of(wanted)
            raise StoreError(f"{file} cannot be used ({error}); delete it to drive the scenario again") from None
        return rollout
