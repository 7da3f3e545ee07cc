"""Every reader of the project: sound files for it, and how it reads them."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from tests.sources import made_formats
from tests.storage.old_folders import unpack

PARTS = ("train", "validation")  # of a training's log


@dataclass(frozen=True)
class Target:
    """`read` gets the folder that all sound files lie in; one of the `files` (patterns) is changed before."""

    read: Callable[[Path], Any]
    files: tuple[str, ...]
    needs: str = ""  # a module without which it is left out


def write_seeds(folder: Path) -> None:
    """All sound files: logs of every source, and the folders that radp writes."""
    unpack(folder)
    for name, (_, write) in made_formats.WRITERS.items():
        (folder / name).mkdir()
        write(folder / name)
    from radp.scenario.neutral_json import save_json, scenario_to_json
    from radp.scenario.store import ScenarioStore
    from radp.scene.npz import write_npz
    from radp.scene.samples import SampleStore

    (folder / "neutral").mkdir()
    save_json(scenario_to_json(next(iter(ScenarioStore.open(folder / "store")))), folder / "neutral" / "made.json")
    write_npz(folder / "npz", SampleStore.open(folder / "samples").read([0]), ["map"], ["token"])
    plan = {"x": list(range(1, 81)), "y": [0.0] * 80, "heading": [0.0] * 80}
    (folder / "plan").mkdir()
    np.savez(folder / "plan" / "plan.npz", **{name: np.array(values, dtype=float) for name, values in plan.items()})
    rows = "\n".join(",".join(str(v) for v in row) for row in zip(*plan.values()))
    (folder / "plan" / "plan.csv").write_text(",".join(plan) + "\n" + rows + "\n")
    try:
        from tests.sources.nuplan.made_files import make_log, make_map

        make_map(folder / "nuplan" / "maps")
        make_log(folder / "nuplan" / "db" / "made.db", [(1000, "changing_lane")])
    except ImportError:
        pass
    from tests.small_scenarios import small_scenario
    from tests.sources.nuplan.made_simulation_logs import write_log

    (folder / "simulation-log").mkdir()
    write_log(small_scenario(), folder / "simulation-log" / "made.msgpack.xz", "us-ma-boston")
    write_other_seeds(folder)
    (folder / "filter").mkdir()
    (folder / "filter" / "made.yaml").write_text(
        "scenario_types: [changing_lane]\nlimit_total_scenarios: 10\nshuffle: false\n"
    )


def write_other_seeds(folder: Path) -> None:
    """Weights and results as others publish them, and what radp itself writes beside its stores."""
    from radp.metrics.score import METRICS
    from radp.model.checkpoint import export_published
    from radp.model.config import NUPLAN
    from radp.model.rule_weights import conditioned, save_weight_input
    from radp.planners.learned import load_planner_model
    from radp.planners.zoo.checkpoint import save_folder
    from radp.planners.zoo.pdm_open import PDMConfig, PDMOpen
    from radp.runs.files import write_json_atomically
    from tests.made_models import randomised
    from tests.sources.nuplan.test_samples import write_sample

    for name in ("published", "results", "nuplan-sample", "gz", "training-log"):
        (folder / name).mkdir()
    export_published(
        randomised(replace(NUPLAN, hidden=16, heads=2, encoder_depth=1)), folder / "published" / "model.pth"
    )
    save_folder("pdm-open", PDMOpen(PDMConfig(hidden=8)), folder / "zoo")
    shutil.copytree(folder / "aligned", folder / "weighted")
    listening = conditioned(load_planner_model(folder / "aligned"), ("lane", "goal"))
    rules = save_weight_input(listening, folder / "weighted")
    base = json.loads((folder / "aligned" / "planner.json").read_text())["base"]
    write_json_atomically(folder / "weighted" / "planner.json", {"base": base, "rule_weights": list(rules)})
    write_sample(folder / "nuplan-sample" / "made.npz")
    (folder / "gz" / "made.json.gz").write_bytes(gzip.compress((folder / "neutral" / "made.json").read_bytes(), 1))
    scores = {name: [1.0, 0.5, 0.75] for name in ("score", *METRICS)}
    names = {"scenario": ["a", "b", "final_score"], "scenario_type": ["x", "y", "final_score"]}
    table = {
        **names,
        "planner_name": ["p"] * 3,
        "num_scenarios": [None, None, 2.0],
        **scores,
    }
    lines = [",".join("" if v is None else str(v) for v in row) for row in zip(*table.values())]
    (folder / "results" / "made.csv").write_text("\n".join((",".join(table), *lines)) + "\n")
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "results" / "made.parquet")
    rows = [{"step": step, "part": part, "ego": 0.1, "neighbour": 0.2} for part in PARTS for step in (50, 100)]
    (folder / "training-log" / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    focus = {"rows": [0, 2], "looked_at": 3, "of": 4, "planner": "p", "within": 5.0, "seed": 0}
    write_json_atomically(folder / "focus.json", {"format": "radp-focus", **focus})


def convert(source: str, name: str, ego: str, folder: Path) -> None:
    """All that a conversion does with the logs of a folder, without writing them."""
    from radp.scenario.egos import choose_egos
    from radp.sources.convert import convert_item, load_source
    from radp.sources.settings import LogChoice

    reader = load_source(source)
    for item in reader.items(LogChoice(data=folder / name, ego=ego)):
        convert_item(reader, partial(choose_egos, ego=ego), item)


def nuplan(folder: Path) -> None:
    from radp.sources.convert import as_it_is, convert_item
    from radp.sources.nuplan import cut
    from radp.sources.nuplan.source import NUPLAN
    from radp.sources.settings import LogChoice

    cut._open_city.cache_clear()
    for item in NUPLAN.items(LogChoice(db=folder / "nuplan" / "db", maps=folder / "nuplan" / "maps")):
        convert_item(NUPLAN, as_it_is, item)


def simulation_log(folder: Path) -> None:
    from radp.sources.nuplan.simulation_log import read_simulation_log

    read_simulation_log(folder / "simulation-log" / "made.msgpack.xz")


def scenario_filter(folder: Path) -> None:
    from radp.sources.nuplan.filter import read_filter

    read_filter(folder / "filter" / "made.yaml")


def neutral_json(folder: Path) -> None:
    from radp.scenario.neutral_json import read_scenario

    read_scenario(folder / "neutral" / "made.json")


def store(name: str, folder: Path) -> None:
    from radp.scenario.store import ScenarioStore

    for scenario in ScenarioStore.open(folder / name, allow_missing=True):
        scenario.validate()


def drives(name: str, folder: Path) -> None:
    from radp.evaluation.closed_loop import Run

    for drive in Run.open(folder / "runs" / name).rollouts():
        assert drive is not None


def samples(folder: Path) -> None:
    from radp.scene.samples import SampleStore

    kept = SampleStore.open(folder / "samples")
    kept.read(range(len(kept)))


def log_samples(folder: Path) -> None:
    from radp.scene.log_samples import LogSamples

    kept = LogSamples.open(folder / "log-samples")
    kept.read(range(min(2, len(kept))))


def npz(folder: Path) -> None:
    from radp.scene.npz import read_npz

    read_npz(folder / "npz" / "map_token.npz")


def plan_file(suffix: str, folder: Path) -> None:
    from radp.report import plan_file as module

    path = folder / "plan" / f"plan.{suffix}"
    (module._read_npz if suffix == "npz" else module._read_csv)(path)


def cache(folder: Path) -> None:
    from radp.attribution.cache import Cache

    kept = Cache(folder / "cache")
    kept.read(np.arange(len(kept)))


def calibration(folder: Path) -> None:
    from radp.attribution.calibration import Calibration

    Calibration.load(folder / "aligned")


def head(folder: Path) -> None:
    from radp.model.head import load_head

    load_head(folder / "aligned")


def model(folder: Path) -> None:
    from radp.model.checkpoint import load_model

    load_model(folder / "base")


def planner(folder: Path) -> None:
    from radp.planners.learned import load_learned

    load_learned(folder / "aligned")


def weighted(folder: Path) -> None:
    from radp.planners.learned import load_learned

    load_learned(folder / "weighted")


def run_folder(folder: Path) -> None:
    from radp.runs.folder import RunFolder

    json.dumps(RunFolder.open(folder / "converted").ledger.failures())


def training_state(folder: Path) -> None:
    import torch

    from radp.runs.folder import RunFolder
    from radp.training.ema import Ema
    from radp.training.state import load_state

    net = torch.nn.Linear(2, 2)
    load_state(RunFolder.open(folder / "trained"), net, torch.optim.AdamW(net.parameters()), Ema(net, 0.9, False))


def published(folder: Path) -> None:
    from radp.model.checkpoint import load_model

    load_model(folder / "published" / "model.pth")


def tensors(folder: Path) -> None:
    from radp.planners.zoo.checkpoint import read_tensors

    read_tensors(folder / "published" / "model.pth")


def zoo_folder(folder: Path) -> None:
    from radp.planners.zoo.checkpoint import load_folder

    load_folder(folder / "zoo")


def results(suffix: str, folder: Path) -> None:
    from radp.sources.nuplan.results import read_results

    read_results(folder / "results" / f"made.{suffix}")


def compressed_json(folder: Path) -> None:
    from radp.scenario.neutral_json import read_scenario

    read_scenario(folder / "gz" / "made.json.gz")


def cards(folder: Path) -> None:
    from radp.evaluation.planners import Row
    from radp.sources.driven import failure_samples

    Row.read(folder / "runs" / "reactive", "split", "reactive", "planner")
    failure_samples(folder / "runs" / "reactive")


def training_log(folder: Path) -> None:
    from radp.report.learning_curves import read_log

    for part in PARTS:
        read_log(folder / "training-log", part)


def focus(folder: Path) -> None:
    from radp.training.focus import Focus

    Focus.load(folder / "focus.json")


def journal(folder: Path) -> None:
    from radp.runs.folder import RunFolder
    from radp.sources.convert import Conversion

    Conversion(RunFolder.open(folder / "converted"), None).empty()  # type: ignore[arg-type]  # nothing is written


TARGETS: dict[str, Target] = {
    "waymo-json": Target(partial(convert, "waymo-json", "waymo-json", "sdc"), ("waymo-json/*",)),
    "waymo-proto": Target(partial(convert, "waymo-proto", "waymo-proto", "sdc"), ("waymo-proto/*",)),
    "scenarionet": Target(partial(convert, "scenarionet", "scenarionet", "sdc"), ("scenarionet/*",)),
    "commonroad": Target(partial(convert, "commonroad", "commonroad", "all"), ("commonroad/*",)),
    "argoverse-forecasting": Target(
        partial(convert, "argoverse", "argoverse-forecasting", "sdc"), ("argoverse-forecasting/*",)
    ),
    "argoverse-sensor": Target(
        partial(convert, "argoverse", "argoverse-sensor", "sdc"),
        ("argoverse-sensor/*.feather", "argoverse-sensor/map/*"),
    ),
    "nuplan": Target(nuplan, ("nuplan/db/*", "nuplan/maps/*/*/*"), "pyogrio"),
    "simulation-log": Target(simulation_log, ("simulation-log/*",)),
    "filter": Target(scenario_filter, ("filter/*",), "yaml"),
    "neutral-json": Target(neutral_json, ("neutral/*",)),
    "store": Target(partial(store, "store"), ("store/*",)),
    "drives": Target(partial(drives, "reactive"), ("runs/reactive/config.json", "runs/reactive/drives/*")),
    "drives-with-reasons": Target(partial(drives, "taught"), ("runs/taught/drives/*",)),
    "samples": Target(samples, ("samples/*",)),
    "log-samples": Target(log_samples, ("log-samples/*.*", "log-samples/maps/*")),
    "npz": Target(npz, ("npz/*",)),
    "plan-npz": Target(partial(plan_file, "npz"), ("plan/plan.npz",)),
    "plan-csv": Target(partial(plan_file, "csv"), ("plan/plan.csv",)),
    "cache": Target(cache, ("cache/*",)),
    "calibration": Target(calibration, ("aligned/calibration.json",)),
    "head": Target(head, ("aligned/head.*",)),
    "model": Target(model, ("base/*",)),
    "planner": Target(planner, ("aligned/adapter*", "aligned/planner.json")),
    "weighted": Target(weighted, ("weighted/rule_weights*", "weighted/planner.json")),
    "run-folder": Target(run_folder, ("converted/config.json", "converted/ledger.jsonl")),
    "journal": Target(journal, ("converted/items.jsonl",)),
    "published-weights": Target(published, ("published/*",)),
    "zoo-checkpoint": Target(tensors, ("published/model.pth",)),
    "zoo-folder": Target(zoo_folder, ("zoo/*",)),
    "results-parquet": Target(partial(results, "parquet"), ("results/made.parquet",)),
    "results-csv": Target(partial(results, "csv"), ("results/made.csv",)),
    "nuplan-sample": Target(partial(convert, "nuplan-sample", "nuplan-sample", "sdc"), ("nuplan-sample/*",)),
    "compressed-json": Target(compressed_json, ("gz/*",)),
    "cards": Target(cards, ("runs/reactive/cards.jsonl",)),
    "training-log": Target(training_log, ("training-log/log.jsonl",)),
    "focus": Target(focus, ("focus.json",)),
    "training-state": Target(training_state, ("trained/**/*.*",)),
}
