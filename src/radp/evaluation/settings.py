"""What is driven: one place for the command line, the Python call and config.json. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from tyro.conf import arg

from radp.sim.settings import AGENT_MODES, Agents, Backend, DriveOptions

LimitOver = Literal["kinds", "first"]
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
    """At most this many scenarios, spread over the kinds."""
    limit_over: LimitOver = "kinds"
    """What a limit takes: the first of each kind, then the second of each (kinds); or the first of all (first)."""
    token: tuple[str, ...] = ()
    """Only the scenarios with these tokens."""
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
    """Rules of the teacher: paper, v2 (made for attribution), road and road-v2 (eight more), v2-2s, v2-discount; those
    of the planner's head if not given, the paper's if it has none."""
    weights: tuple[str, ...] = ()
    """How many times as much as by default rules count to a planner that takes weights: collision=3 goal=0.5."""
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
    """At most this many scenarios of each split, spread over the kinds."""
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
    """At most this many scenarios of each split, spread over the kinds."""
    seed: int = 0
    """Of the planner's randomness and of the resamples."""


@dataclass(frozen=True, kw_only=True)
class DoseResponse:
    """A planner that takes weights of rules, driven at several weights of one rule at a time."""

    planner: str
    """Packaged model or planner folder, trained with `radp train align --conditioned`."""
    scenarios: str = "sumo14-val"
    """Name of a packaged split, or a path."""
    rules: tuple[str, ...] = ()
    """Rules whose weights are varied; all that the planner takes if not given."""
    doses: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    """Weights, as multiples of the default; 1 is always among them."""
    agents: Agents = "reactive"
    """How the others move."""
    limit: int | None = None
    """At most this many scenarios, spread over the kinds."""
    seed: int = 0
    """Of the planner's randomness."""


@dataclass(frozen=True, kw_only=True)
class PressureWatch:
    """Planners on one split, with the exact teacher beside each."""

    planners: tuple[str, ...]
    """Names, model folders, or your own as file.py:Class."""
    split: str
    """Packaged split or store."""
    agents: Agents = "reactive"
    """How the others move."""
    limit: int | None = None
    """At most this many scenarios, spread over the kinds."""
    levels: str = "radp-mini"
    """Planner whose usual levels count for all, so that pressures can be compared."""
    rule_set: str = "paper"
    """Rules of the teacher: paper, v2 (made for attribution), v2-2s, v2-discount, road (eight more)."""
    seed: int = 0
    """Of the planners' randomness."""


@dataclass(frozen=True, kw_only=True)
class StateWatch:
    """Planners on the same states of drives, with the same noise."""

    planners: tuple[str, ...]
    """Packaged models or planner folders of one size; the others are compared with the first, the base."""
    states: int = 20_000
    """How many states are searched for focus states, where no list is given."""
    ordinary: int = 2_000
    """How many of the states that are none are planned, at most."""
    draws: int = 2
    """Plans of each state."""
    contexts: Literal["executed", "constant"] = "executed"
    """How the others move: as in the samples, or straight on."""
    urgent: bool = False
    """Of contact and near misses, count only those within the time that it takes to stop instead of 4 s."""
    seed: int = 0
    """Decides states and noise; the noise is another one than that of the search."""


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


@dataclass(frozen=True, kw_only=True)
class JudgedStates:
    """States that a frozen planner plans for, and the rules that judge its plans."""

    planner: str
    """Packaged model or planner folder."""
    data: Path
    """Run of `radp simulate` on training scenarios (its executed states), or samples made by `radp data samples`."""
    rule_set: str = "paper"
    """Rules that judge: paper, v2 (made for attribution), road and road-v2 (eight more), v2-2s, v2-discount."""
    stride: int = 5
    """Samples (0.1 s) between two states of a drive."""
    seed: int = 0
    """Decides samples and noise."""


@dataclass(frozen=True, kw_only=True)
class LevelFit(JudgedStates):
    """What the usual gradients of rules are fitted on."""

    batches: int = 100
    """Calibration batches."""
    batch: int = 64
    """Samples of a batch."""


@dataclass(frozen=True, kw_only=True)
class CachedStates(JudgedStates):
    """What is kept for the training of a head; take different road networks for training and validation."""

    samples: int = 100_000
    """How many, drawn without repetition (at most as many as there are)."""
    geometry: tuple[Literal["cheap", "full"], ...] = ("cheap",)
    """Geometry of the plans to keep for heads that see it; --geometry without a word keeps none."""
    calibration: Path | None = None
    """Folder with the levels of that rule set; the planner's own by default."""


@dataclass(frozen=True, kw_only=True)
class ReportScope:
    """What a report of the paper's tables and figures is about."""

    quick: bool = False
    """Only a few scenarios of each split; every table says so."""
    splits: tuple[str, ...] = ()
    """Packaged splits or stores, the hardest last; sumo14 if not given."""
    base: str = ""
    """The planner to start from; the packaged one if not given."""
    ours: str = ""
    """The rule-aligned planner; the packaged one if not given."""
    scenarios: int | None = None
    """At most this many scenarios of each split, spread evenly over it."""
    others: bool = True
    """Whether the other learned planners of the paper's table are driven, too: a third of all drives."""
