"""Everything that is driven and measured for the report, stage by stage; a stage that is done is not done again.

config.json          settings
splits/NAME          scenarios spread evenly over a split, when not all of them are driven
runs/...             drives, one folder per planner, split and mode
results/...          figures that took long to measure
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from radp.attribution.online import calibration_of
from radp.evaluation.closed_loop import SUMMARY, Run, run_simulation, summarise_run
from radp.evaluation.planners import Row
from radp.evaluation.settings import ReportScope, Simulation
from radp.model.paths import model_path
from radp.planners.learned import base_of
from radp.planners.registry import PLANNERS
from radp.runs.errors import BadInput
from radp.runs.folder import RunFolder
from radp.runs.parallel import parallel_map
from radp.runs.progress import clock
from radp.scenario.shards import MANIFEST
from radp.scenario.splits import open_split
from radp.scenario.store import ScenarioWriter
from radp.sim.settings import Agents
from radp.zoo import list_models, list_splits

COMMAND = "reproduce"
BASE, OURS = "diffusion-planner-mini", "radp-mini"
SPLITS = ("sumo14-val", "sumo14-random", "sumo14-hard")
OTHERS = ("log_replay", "constant_velocity", "idm", "pdm_closed")
TRAINED = ("pdm-open-mini", "urban-driver-mini", "gameformer-mini", "plantf-mini", "pluto-mini")  # in the paper's order
QUICK_SCENARIOS = 8  # of each split
QUICK_STATES, STATES = 50, 500  # for the latency of head and teacher
INTERVENED = 40  # scenarios that are driven again for each rule and each way along its gradient
COST = {
    "log_replay": 0.1,
    "constant_velocity": 0.1,
    "idm": 0.2,
    "pdm_closed": 0.9,
    "pdm-open-mini": 0.1,
    "urban-driver-mini": 0.2,
    "gameformer-mini": 0.4,
    "plantf-mini": 0.3,
    "pluto-mini": 0.4,
}  # in drives of a diffusion planner


@dataclass(frozen=True)
class Setup:
    """What is compared, on what."""

    base: str
    ours: str
    splits: tuple[str, ...]
    scenarios: int | None  # of each split; None: all
    seed: int = 0
    intervention: tuple[str, ...] = ()  # rules; empty: all
    intervention_limit: int | None = None
    states: int = STATES
    others: bool = True  # the published planners that were trained here

    @property
    def ablation(self) -> dict[str, str]:
        """Setting of the paper -> our planner, '' where none is packaged."""
        known = list_models()
        variants = {"FFN-LoRA (no rules)": "no-rules", "No normalization": "no-normalisation"}
        found = {s: f"{self.ours}-{v}" if f"{self.ours}-{v}" in known else "" for s, v in variants.items()}
        return {"Collision-Guided Diffusion Planner": f"{self.base}+guidance", **found, "RADP": self.ours}

    @property
    def trained(self) -> tuple[str, ...]:
        """The published planners of which a trained one is packaged, if they are wanted."""
        known = list_models() if self.others else []
        return tuple(name for name in TRAINED if name in known)

    @property
    def overview(self) -> tuple[str, ...]:
        """Everybody, each once, ours last."""
        return tuple(dict.fromkeys((*OTHERS, *self.trained, self.base, self.ours)))

    def scope(self) -> str:
        """What every table says about the number of scenarios."""
        if self.scenarios is None:
            return "Scenarios: all of each split."
        return (
            f"ONLY {self.scenarios} SCENARIOS of each split, spread evenly over it: intervals are wide and prove "
            "little. Run without --quick and --scenarios for the whole splits."
        )


def chosen_setup(wanted: ReportScope) -> Setup:
    """What a report is about, with packaged models and splits where none are named."""
    if wanted.scenarios is not None and wanted.scenarios < 1:
        raise BadInput(f"scenarios is {wanted.scenarios}, expected at least 1")
    known, packaged = list_models(), list_splits()
    splits = wanted.splits or tuple(name for name in SPLITS if name in packaged)
    if not splits:
        raise BadInput("no split is packaged; name some with --splits")
    ours = wanted.ours or (OURS if OURS in known else wanted.base or BASE)
    base = wanted.base or base_of(ours) or BASE
    for split in splits:
        open_split(split)
    for name in (base, ours):
        if name not in PLANNERS and ":" not in name:
            model_path(name)
    limit = wanted.scenarios or (QUICK_SCENARIOS if wanted.quick else None)
    setup = Setup(base, ours, splits, limit, others=wanted.others)
    if wanted.quick:
        return replace(setup, intervention=("collision",), intervention_limit=limit, states=QUICK_STATES)
    return replace(setup, intervention_limit=min(limit or INTERVENED, INTERVENED))


@dataclass
class Reproduction:
    """The folder, and what has been found so far."""

    setup: Setup
    folder: RunFolder
    workers: int = 1
    runs: dict[tuple[str, str, str], Run] = field(default_factory=dict)  # split, agents, planner
    missing: list[str] = field(default_factory=list)  # what could not be done, and why

    @classmethod
    def open(cls, setup: Setup, out: Path | str, workers: int) -> Reproduction:
        settings = {name: value for name, value in setup.__dict__.items() if name != "seed"}
        folder = RunFolder.create(out, COMMAND, settings, setup.seed, {"workers": workers})
        return cls(setup, folder, workers)

    def scenarios(self, split: str) -> str:
        """The split, or a store with some of its scenarios."""
        if self.setup.scenarios is None:
            return split
        return str(spread(split, self.setup.scenarios, self.folder.path / "splits" / Path(split).name))

    def drive(
        self, planner: str, split: str, agents: Agents = "reactive", *, taught: bool = False, plans: bool = False
    ) -> SplitRun:
        """A drive of this reproduction, with its place; the teacher goes by the usual levels of ours."""
        name = Path(split).name
        folder = self.folder.path / "runs" / f"{name}-{agents}-{Path(planner).name}{'-taught' if taught else ''}"
        levels = self.levels if taught and planner != self.setup.ours else ""
        place = (planner, name, self.scenarios(split), str(folder), agents)
        return SplitRun(*place, taught=taught, plans=plans, seed=self.setup.seed, levels=levels)

    @property
    def levels(self) -> str:
        """The planner whose usual levels count for all: ours, if it has any."""
        return self.setup.ours if calibration_of(None, self.setup.ours) is not None else ""

    def rows(self, agents: str, planners: Sequence[str], splits: Sequence[str] | None = None) -> list[Row]:
        """Values of what was driven, by split in the order of the planners."""
        wanted = [Path(split).name for split in splits or self.setup.splits]
        names = [Path(planner).name for planner in planners]
        return [
            Row.read(self.runs[split, agents, name].folder.path, split, agents, name)
            for split in wanted
            for name in names
            if (split, agents, name) in self.runs
        ]

    def result(self, name: str, measure: Callable[[], Any]) -> Any:
        """JSON that is kept in results/NAME.json."""
        place = f"results/{name}.json"
        if not self.folder.exists(place):
            self.folder.write_json(place, measure())
        return self.folder.read_json(place)

    @property
    def hardest(self) -> str:
        """The split of ablation and figures: the last one."""
        return self.setup.splits[-1]

    @property
    def shown_against(self) -> str:
        """The planner beside ours in figures: the base, or IDM where ours is the base."""
        return "idm" if self.setup.base == self.setup.ours else self.setup.base


def spread(split: str, count: int, out: Path) -> Path:
    """A store with `count` scenarios of a split, evenly spread over it; kept if it is there."""
    if not (out / MANIFEST).exists():
        whole = open_split(split)
        places = np.unique(np.linspace(0, len(whole) - 1, min(count, len(whole))).round().astype(int))
        out.parent.mkdir(parents=True, exist_ok=True)
        with ScenarioWriter(out) as writer:
            for place in places:
                writer.add(whole[int(place)])
    return out


@dataclass(frozen=True)
class SplitRun:
    """One planner on one split; `scenarios` is the split itself or the store with some of it."""

    planner: str
    split: str
    scenarios: str
    folder: str
    agents: Agents = "reactive"
    taught: bool = False  # with the teacher beside it, which changes no trajectory
    plans: bool = False
    seed: int = 0
    levels: str = ""  # planner whose usual levels the teacher goes by; its own if empty

    @property
    def words(self) -> str:
        return f"{self.planner} on {self.split}, {self.agents}"

    def run(self) -> None:
        """Drive and score, or finish what is there."""
        job = Simulation(
            planner=self.planner, scenarios=self.scenarios, agents=self.agents, seed=self.seed, keep_plans=self.plans,
            attribution="teacher" if self.taught else "own", calibration=self.levels,
        )  # fmt: skip
        run = run_simulation(job, self.folder)
        if not Path(self.folder, SUMMARY).exists():
            summarise_run(run)


def all_drives(work: Reproduction) -> list[SplitRun]:
    """Everybody, with the teacher on the first split and ours always; non-reactive traffic for what is learned; the
    variants of the ablation. Long ones first."""
    setup, found = work.setup, []
    base, ours = setup.base, setup.ours
    for split in setup.splits:
        first, last = split == setup.splits[0], split == work.hardest
        for planner in setup.overview:
            shown = last and planner in (base, work.shown_against) and planner != ours
            found.append(work.drive(planner, split, taught=first or planner == ours, plans=shown))
        found += [work.drive(planner, split, "nonreactive") for planner in dict.fromkeys((base, *setup.trained, ours))]
        if last:
            variants = [name for name in setup.ablation.values() if name and name not in (base, ours)]
            found += [work.drive(planner, split) for planner in variants]
    return sorted(found, key=lambda drive: -COST.get(drive.planner, 1.0))


def run_drives(work: Reproduction) -> None:
    """All drives, several at a time: each process loads planners and compiled kernels once."""
    drives = all_drives(work)
    outcome = parallel_map(
        SplitRun.run, drives, workers=work.workers, name=lambda d: d.words, label="runs driven", folder=work.folder.path
    )
    work.missing += [f"{failure.piece}: {failure.reason}" for failure in outcome.failures]
    for i in outcome.results:
        drive = drives[i]
        work.runs[drive.split, drive.agents, Path(drive.planner).name] = Run.open(drive.folder)


def run_stages(work: Reproduction, stages: Mapping[str, Callable[[], None]], say: Callable[[str], None]) -> None:
    """One after the other; what is refused is noted and left out."""
    begin = time.monotonic()
    for i, (words, stage) in enumerate(stages.items()):
        say(f"[{i + 1}/{len(stages)}] {words} ({clock(time.monotonic() - begin)} so far)")
        try:
            stage()
        except (BadInput, KeyError) as error:
            reason = str(error) if isinstance(error, BadInput) else f"there is no run of {error}"
            work.missing.append(f"{words}: {reason}")
            say(f"  left out: {reason}")
