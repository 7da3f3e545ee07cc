"""Everything that is driven and measured for the report, stage by stage; a stage that is done is not done again.

config.json          settings
splits/NAME          scenarios spread evenly over a split, when not all of them are driven
runs/...             drives, one folder per planner, split and mode
results/...          figures that took long to measure
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import Run, run_simulation, summarise_run
from radp.evaluation.planners import Row, read_values
from radp.runs import RunFolder
from radp.runs.errors import BadInput
from radp.runs.progress import clock
from radp.scenario.shards import MANIFEST
from radp.scenario.store import ScenarioWriter
from radp.zoo import list_models, list_splits, open_split

COMMAND = "reproduce"
BASE, OURS = "diffusion-planner-mini", "radp-mini"
SPLITS = ("sumo14-val", "sumo14-random", "sumo14-hard")
OTHERS = ("log_replay", "constant_velocity", "idm", "pdm_closed")
QUICK_SCENARIOS = 4  # of each split
QUICK_STATES, STATES = 50, 500  # for the latency of head and teacher
# What a drive costs, in drives of the learned planner: only the estimate of the time left depends on it.
COST = {"log_replay": 0.1, "constant_velocity": 0.1, "idm": 0.2, "pdm_closed": 1.0}
TAUGHT_COST, GUIDED_COST, LATENCY_COST = 2.0, 1.6, 4.0


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

    @property
    def ablation(self) -> dict[str, str]:
        """Setting of the paper -> our planner, '' where none is packaged."""
        known = list_models()
        variants = {"FFN-LoRA (no rules)": "no-rules", "No normalization": "no-normalisation"}
        found = {s: f"{self.ours}-{v}" if f"{self.ours}-{v}" in known else "" for s, v in variants.items()}
        return {"Collision-Guided Diffusion Planner": f"{self.base}+guidance", **found, "RADP": self.ours}

    def scope(self) -> str:
        """What every table says about the number of scenarios."""
        if self.scenarios is None:
            return "Scenarios: all of each split."
        return (
            f"ONLY {self.scenarios} SCENARIOS of each split, spread evenly over it: intervals are wide and prove "
            "little. Run without --quick and --scenarios for the whole splits."
        )


def default_setup(
    quick: bool, splits: Sequence[str] = (), base: str = "", ours: str = "", limit: int | None = None
) -> Setup:
    """Packaged models and splits, as far as they are there."""
    known, packaged = list_models(), list_splits()
    chosen = tuple(splits) or tuple(name for name in SPLITS if name in packaged)
    if not chosen:
        raise BadInput("no split is packaged; name some with --splits")
    base = base or BASE
    ours = ours or (OURS if OURS in known else base)
    if not quick:
        return Setup(base, ours, chosen, limit)
    count = limit or QUICK_SCENARIOS
    return Setup(base, ours, chosen, count, intervention=("collision",), intervention_limit=count, states=QUICK_STATES)


@dataclass(frozen=True)
class Stage:
    """One piece of the work; `cost` in drives of the learned planner."""

    words: str
    cost: float
    work: Callable[[], Any]


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
        self, planner: str, split: str, agents: str = "reactive", taught: bool = False, plans: bool = False
    ) -> Run:
        """Drive and score, or take what is there."""
        name = Path(split).name
        folder = self.folder.path / "runs" / f"{name}-{agents}-{Path(planner).name}{'-taught' if taught else ''}"
        run = run_simulation(
            planner, self.scenarios(split), folder, agents, workers=self.workers, seed=self.setup.seed,
            keep_plans=plans or taught, attribution="teacher" if taught else "own",
        )  # fmt: skip
        if not folder.joinpath("summary.json").exists():
            summarise_run(run)
        self.runs[name, agents, Path(planner).name] = run
        return run

    def rows(self, agents: str, planners: Sequence[str], splits: Sequence[str] | None = None) -> list[Row]:
        """Values of what was driven, by split in the order of the planners."""
        wanted = [Path(split).name for split in splits or self.setup.splits]
        names = [Path(planner).name for planner in planners]
        return [
            Row(split, agents, name, read_values(self.runs[split, agents, name].folder.path))
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


def drive_stages(work: Reproduction) -> list[Stage]:
    """All drives: ours with the teacher beside it, which changes no trajectory."""
    setup, stages = work.setup, []
    base, ours, same = setup.base, setup.ours, setup.base == setup.ours

    def add(planner: str, split: str, agents: str = "reactive", taught: bool = False, plans: bool = False) -> None:
        count = len(open_split(split)) if setup.scenarios is None else setup.scenarios
        factor = COST.get(planner, 1.0) * (TAUGHT_COST if taught else 1.0) * (GUIDED_COST if "+" in planner else 1.0)
        words = f"{planner} on {Path(split).name}, {agents}{', teacher beside it' if taught else ''}"
        stages.append(Stage(words, factor * count, lambda: work.drive(planner, split, agents, taught, plans)))

    for split in setup.splits:
        add(ours, split, taught=True)
        if not same:
            add(base, split, plans=split == work.hardest)
        for planner in OTHERS:
            add(planner, split, plans=planner == work.shown_against and split == work.hardest)
        for planner in dict.fromkeys((base, ours)):
            add(planner, split, "nonreactive")
    for planner in setup.ablation.values():
        if planner and planner != ours:
            add(planner, work.hardest)
    return stages


def run_stages(work: Reproduction, stages: Sequence[Stage], say: Callable[[str], None]) -> None:
    """One after the other, with an estimate of the time left from the cost of what is done."""
    begin, done, total = time.monotonic(), 0.0, sum(stage.cost for stage in stages)
    for i, stage in enumerate(stages):
        passed = time.monotonic() - begin
        left = f", about {clock(passed / done * (total - done))} left" if done and passed > 1 else ""
        say(f"[{i + 1}/{len(stages)}] {stage.words} ({clock(passed)} so far{left})")
        try:
            stage.work()
        except BadInput as error:
            work.missing.append(f"{stage.words}: {error}")
            say(f"  left out: {error}")
        done += stage.cost
