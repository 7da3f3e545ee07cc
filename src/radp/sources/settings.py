"""Which logs become scenarios: one place for command line, Python call and config.json. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from radp.sim.settings import Agents


@dataclass(frozen=True, kw_only=True)
class Limited:
    """What every conversion has."""

    limit: int | None = None
    """At most so many, from the first."""


@dataclass(frozen=True)
class LogChoice(Limited):
    """Which logs are read; a source takes what concerns it and refuses what it cannot do without."""

    data: Path | None = None
    """A log, or a folder that is searched for logs."""
    ego: str = "sdc"
    """Who drives: sdc (the recording car), all (every vehicle with a full track), the id of a track, or problem
    (CommonRoad: the start and goal of each planning problem, without an expert)."""
    db: Path | None = None
    """nuPlan: folder of the .db files."""
    maps: Path | None = None
    """nuPlan: folder of the maps."""
    filter: Path | None = None
    """nuPlan: YAML file of a scenario filter."""

    @property
    def place(self) -> str:
        """Where the logs are looked for."""
        return str(self.data or self.db)


@dataclass(frozen=True, kw_only=True)
class Demonstrations(Limited):
    """Who drives what, and which drives are kept."""

    scenarios: str
    """Packaged split, store folder, or neutral JSON."""
    planner: str = "pdm_careful"
    """Whose driving is the demonstration."""
    after: str = ""
    """Planner that drives first; nobody by default."""
    run: Path | None = None
    """Finished run of that planner on the same scenarios with the same seed: where it collided or left the road."""
    failed_only: bool = False
    """Whether scenarios of that run without such a failure are left out."""
    takeovers: int = 1
    """Takeovers of each scenario, at different moments."""
    future: int = 80
    """Samples of 0.1 s that must remain after a takeover; fewer let it come before later failures."""
    min_score: float = 0.8
    """Least score of the demonstrated part."""
    gates: bool = True
    """Whether a drive that fails a gate (a collision at fault, off the road, ...) is refused. With --no-gates and
    --min-score 0 every finished drive is kept: the states that a planner really meets.
    """
    agents: Agents = "reactive"
    """How the others move."""
    seed: int = 0
    """Decides moments and noise."""

    @property
    def place(self) -> str:
        """Where the scenarios are looked for."""
        return self.scenarios


@dataclass(frozen=True, kw_only=True)
class SumoSplit:
    """A split of road networks and traffic made by SUMO; the same seed makes the same bytes."""

    split: str = "train"
    """Name of the split; splits of different names never share a network."""
    networks: int = 60
    """Number of road networks."""
    scenarios: int | None = None
    """Number of scenarios in all (3000 when neither this nor per-kind is given)."""
    per_kind: int | None = None
    """Number of scenarios of each of the 14 kinds."""
    seed: int = 0
    """Seed of everything."""
