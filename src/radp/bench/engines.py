"""What an engine costs: the same pieces and the same drives on this machine's pool, on Ray and as jobs of SLURM.

python -m radp.cli.main bench engines --json
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from radp.evaluation.closed_loop import driver_of, run_simulation, split_of
from radp.evaluation.settings import Simulation
from radp.runs.allowance import Allowance
from radp.runs.engine import Engine, EngineName, use_engine
from radp.runs.errors import MissingExtra, require
from radp.runs.journal import maps_of
from radp.runs.parallel import parallel_map
from radp.runs.pool import Isolated
from radp.runs.timing import load_average
from radp.sim.rollout_store import RolloutStore
from radp.sim.simulate import drive_batch

ENGINES: dict[EngineName, str] = {"local": "", "ray": "ray", "slurm-local": "submitit"}  # with the module they need
WORKERS = (1, 2)
PIECE_S, PIECES = 1.0, 12  # waiting pieces, of a worker
PLANNERS = ("idm", "radp-mini")
SPLIT, BATCH = "sumo14-val", 8


def bench_engines(scenarios: int = 200) -> dict[str, Any]:
    """Waiting pieces show the engine alone, drives show it at work; parts are what docs/scale.md calculates with."""
    figures: dict[str, Any] = {"scenarios": scenarios, "load_average": load_average()}
    for name, module in ENGINES.items():
        try:
            if module:
                require(module, name.partition("-")[0])
        except MissingExtra as error:
            figures[name] = {"missing": str(error)}
            continue
        figures[name] = {
            f"workers_{count}": {
                "waiting": _on(name, partial(waiting, count)),
                **{planner: _on(name, partial(driving, count, planner, scenarios)) for planner in PLANNERS},
            }
            for count in WORKERS
        }
    figures["parts"] = {planner: parts(planner, min(scenarios, BATCH)) for planner in PLANNERS}
    return figures


def _on(name: EngineName, measure: Callable[[Path], dict[str, float]]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="radp-bench-") as folder, use_engine(Engine(name)):
        return measure(Path(folder))


def waiting(workers: int, folder: Path) -> dict[str, float]:
    """Pieces that wait for a second. Overhead: what a worker takes between the end of one and the begin of the next."""
    count = workers * PIECES
    begin, cpu = time.time(), time.process_time()
    outcome = parallel_map(_wait, range(count), workers=workers, folder=folder)
    seconds, cpu = time.time() - begin, time.process_time() - cpu
    by_worker: dict[int, list[tuple[float, float]]] = {}
    for process, first, last in outcome.results.values():
        by_worker.setdefault(process, []).append((first, last))
    gaps = [b[0] - a[1] for spans in by_worker.values() for a, b in pairwise(sorted(spans))]
    return {
        "begin_s": min(spans[0] for all_spans in by_worker.values() for spans in all_spans) - begin,
        "pieces_per_s": count / seconds,
        "overhead_ms": 1e3 * fmean(gaps),
        "overhead_share": fmean(gaps) / PIECE_S,
        "driver_cpu_ms": 1e3 * cpu / count,
    }


def _wait(_: int) -> tuple[int, float, float]:
    begin = time.time()
    time.sleep(PIECE_S)
    return os.getpid(), begin, time.time()


def driving(workers: int, planner: str, scenarios: int, folder: Path) -> dict[str, float]:
    """The same scenarios in batches of the same size; the rest is starting, loading, writing and waiting."""
    job = Simulation(planner=planner, scenarios=SPLIT, limit=scenarios)
    begin = time.perf_counter()
    run = run_simulation(job, folder / "run", BATCH, workers)
    seconds = time.perf_counter() - begin
    inside = sum(node["seconds"] for found in maps_of(run.folder.path) for node in found["nodes"].values())
    pieces = sum(found["done"] for found in maps_of(run.folder.path))
    return {
        "seconds": seconds,
        "scenarios_per_s": scenarios / seconds,
        "pieces": pieces,
        "outside_pieces_s": seconds * workers - inside,
    }


def parts(planner: str, scenarios: int) -> dict[str, float]:
    """Load, step and write of one worker, measured in a process of its own."""
    isolated = Isolated(partial(_parts, planner), 1, Allowance())
    try:
        found: dict[str, float] = isolated.call(scenarios).value
    finally:
        isolated.close()
    return found


@contextmanager
def _timed(into: dict[str, float], name: str) -> Iterator[None]:
    begin = time.perf_counter(), time.process_time()
    yield
    into[f"{name}_s"], into[f"{name}_cpu_s"] = time.perf_counter() - begin[0], time.process_time() - begin[1]


def _parts(planner: str, scenarios: int) -> dict[str, float]:
    job = Simulation(planner=planner, scenarios=SPLIT, limit=scenarios)
    figures: dict[str, float] = {"scenarios": scenarios, "import_cpu_s": time.process_time()}
    with _timed(figures, "load"):
        driver, split = driver_of(job), split_of(job)
        logs = [split[i] for i in range(scenarios)]
    drive_batch(driver, logs[:1], job)  # compiles, or reads what is compiled
    with _timed(figures, "drive"):
        rollouts = drive_batch(driver, logs, job)
    steps = sum(len(rollout.ego) for rollout in rollouts)
    with tempfile.TemporaryDirectory(prefix="radp-bench-") as folder:
        store = RolloutStore(folder)
        with _timed(figures, "write"):
            for rollout in rollouts:
                store.write(rollout)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {
        **figures,
        "step_cpu_ms": 1e3 * figures["drive_cpu_s"] / steps,
        "drive_cpu_s_per_scenario": figures["drive_cpu_s"] / scenarios,
        "write_ms_per_scenario": 1e3 * figures["write_s"] / scenarios,
        "bytes_per_scenario": size / scenarios,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
