"""What is driven: one place for the command line, the Python call and config.json. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from tyro.conf import arg

from radp.sim.settings import AGENT_MODES, Agents, Backend, DriveOptions

AttributionMode = Literal["own", "teacher"]
ATTRIBUTIONS: tuple[AttributionMode, ...] = get_args(AttributionMode)


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Who drives what."""

    planner: str
    """Name of a planner, or your own as file.py:Class or module:Class."""
    scenarios: str
    """Name of a packaged split, or a path (store, neutral JSON file, folder of them)."""
    limit: int | None = None
    """At most this many scenarios, from the first."""
    allow_missing: bool = False
    """Drive what can be read of a store that is incomplete."""


@dataclass(frozen=True, kw_only=True)
class Simulation(DriveOptions, Assignment):
    """One planner on some scenarios, in closed loop."""

    attribution: AttributionMode = "own"
    """own: what the planner's head reports (kept with --keep-plans); teacher: the exact pressures too, always kept."""
    calibration: str = ""
    """Planner whose usual levels the teacher goes by, for planners that have none of their own."""
    rule_set: str = ""
    """Rules of the teacher: paper, v2 (made for attribution), v2-2s, v2-discount; those of the planner's head if not
    given, the paper's if it has none."""
    backend: Backend = "torch"
    """What computes a diffusion planner: torch, onnx, openvino, or auto for what is installed (config.json says which).
    Plans are the same within rounding."""
    expert_target: bool = False
    """The teacher's goal asks for the logged expert's progress instead of what is reachable: for studies only."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Planners on splits, in one table."""

    planners: tuple[str, ...]
    """Names, model folders, or your own as file.py:Class."""
    splits: tuple[str, ...]
    """Packaged splits or stores."""
    agents: tuple[Agents, ...] = AGENT_MODES
    """How the others move."""
    limit: int | None = None
    """At most this many scenarios of each split."""
    seed: int = 0
    """Of the planners' randomness; the first of several."""
    backend: Backend = "torch"
    """What computes the diffusion planners among them: torch, onnx, openvino, or auto for what is installed."""
    seeds: int = 1
    """How many seeds each scenario is driven with, averaged inside it; planners without randomness drive once."""


@dataclass(frozen=True, kw_only=True)
class FidelityCheck:
    """A head and its teacher, on the same frames of some splits."""

    planner: str
    """Packaged model or planner folder with a head."""
    splits: tuple[str, ...]
    """Packaged splits or stores."""
    agents: Agents = "reactive"
    """How the others move."""
    limit: int | None = None
    """At most this many scenarios of each split."""
    seed: int = 0
    """Of the planner's randomness and of the resamples."""


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """What is driven in each round of learning, and what decides whether it is kept."""

    start: str
    """Packaged model or model folder."""
    scenarios: str
    """Training scenarios; each round drives another part of them."""
    dev: str = "sumo14-dev"
    """Scenarios that decide whether a round is kept, of other road networks than training and tests."""
    rounds: int = 3
    """How often."""
    expert: str = "pdm_careful"
    """Planner that takes over."""
    takeovers: int = 2
    """Takeovers of each scenario."""
    stride: int = 5
    """Frames (0.1 s) between the samples of one driven log."""
    seed: Annotated[int, arg(name="drive-seed")] = 0
    """Of the driving planners' randomness, and of the moments of takeovers."""
