"""Drives that others made with nuplan-devkit, as a run like any other."""

from __future__ import annotations

from pathlib import Path

from radp.evaluation.closed_loop import COMMAND, Run
from radp.evaluation.settings import Simulation
from radp.runs.errors import BadInput
from radp.runs.folder import RunFolder
from radp.scenario.store import ScenarioWriter
from radp.sources.nuplan.simulation_log import SUFFIX, read_simulation_log

SCENARIOS = "scenarios"


def open_drives(path: Path, maps: Path | None, out: Path) -> Run:
    """The run in a folder, or one made in OUT/run-NAME of the SimulationLog file or files at a path."""
    if (path / "config.json").exists():
        return Run.open(path)
    files = [path] if path.is_file() else sorted(path.rglob(f"*{SUFFIX}"))
    if not files or not files[0].name.endswith(SUFFIX):
        raise BadInput(f"{path} holds neither a run of radp simulate nor {SUFFIX} files")
    return run_of_logs(files, maps, out / f"run-{path.name.removesuffix(SUFFIX)}")


def run_of_logs(files: list[Path], maps: Path | None, out: Path) -> Run:
    """Write the drives of SimulationLog files as a run folder; drives that are there already are kept."""
    drives = [read_simulation_log(file, maps) for file in files]
    planners = sorted({drive.planner for drive in drives})
    place = out / SCENARIOS
    job = Simulation(planner=", ".join(planners), scenarios=str(place.resolve()), agents="nonreactive", keep_plans=True)
    folder = RunFolder.create(out, COMMAND, job, facts={"maps": maps is not None})
    with ScenarioWriter(place) as writer:
        for drive in drives:
            if drive.scenario.token not in writer:
                drive.scenario.validate()
                writer.add(drive.scenario)
    run = Run(folder, job)
    run.store.clean()
    for drive in drives:
        run.store.write(drive)
    return run
