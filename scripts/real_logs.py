"""The evidence on real logs, from the raw files to a page of tables, with one command that can be stopped and repeated.

    python scripts/real_logs.py --raw data --work runs/real --page docs/real-logs-results.md

`raw` has a folder per source, named as in CONVERSIONS. Stores, drives and pictures go to `work` and stay there: the
licences of the data do not let pictures of them be published. The page holds counts and scores. What exists already
is not made again, so a planner that is added later needs only its own drives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import matplotlib
import numpy as np
import tyro

from radp.evaluation.planners import Row, compare, footnote, table
from radp.evaluation.settings import Comparison
from radp.report.draw import draw_scenario
from radp.road.arrays import road_arrays
from radp.road.match import match_lanes
from radp.road.places import lane_fit
from radp.scenario import PACIFICA, Box, Ego, ObjectType, Scenario
from radp.scenario.egos import choose_egos
from radp.scenario.store import ScenarioStore
from radp.sources.convert import convert, load_source
from radp.sources.settings import LogChoice

matplotlib.use("Agg")
CONVERSIONS = {  # store -> source, folder of raw logs, who drives
    "waymo-sdc": ("waymo-json", "womd_json", "sdc"),
    "waymo-all": ("waymo-json", "womd_json", "all"),
    "waymo-proto": ("waymo-proto", "womd_proto", "sdc"),
    "scenarionet-waymo": ("scenarionet", "scenarionet_waymo", "sdc"),
    "scenarionet-nuscenes": ("scenarionet", "scenarionet_nuscenes", "sdc"),
    "argoverse-sensor": ("argoverse", "av2_sensor", "sdc"),
    "argoverse-forecasting": ("argoverse", "av2_forecasting", "sdc"),
    "commonroad": ("commonroad", "commonroad", "all"),
}
PLANNERS = ("log_replay", "constant_velocity", "idm", "pdm_closed", "diffusion-planner-mini", "radp-mini")
MODES = ("nonreactive", "reactive")
MOVING = 2.0  # m/s
NEAR = 60.0  # m around the ego in which a map is complete
EVERY = 10  # frames between the poses that are compared with lanes


def main(
    raw: Path,
    work: Path,
    page: Path,
    sources: tuple[str, ...] = tuple(CONVERSIONS),
    planners: tuple[str, ...] = PLANNERS,
    splits: tuple[str, ...] = ("waymo-sdc",),
    models: tuple[str, ...] = (),
    tests: tuple[str, ...] = ("waymo-sdc@held-out", "waymo-all@held-out"),
    modes: tuple[str, ...] = MODES,
    pictures: int = 12,
    workers: int = 1,
) -> None:
    """Convert, count, draw, drive; the page is written anew after every planner, so what is finished is never lost.

    Args:
        raw: Folder of the raw logs.
        work: Folder for stores, drives and pictures.
        page: Markdown file to write.
        sources: Stores to make; those without raw logs are passed over.
        planners: Driven on `splits`, in each mode.
        splits: Stores of `work`, or parts of them, for the table of planners.
        models: The one to begin with, what it learned, that aligned: compared on `tests`, with paired differences.
        tests: Stores of `work`, usually parts that no model learned from.
        modes: How the others move.
        pictures: Scenarios in the gallery of each store.
        workers: Processes.
    """
    stores = [make_store(raw, work, name, workers) for name in sources if (raw / CONVERSIONS[name][1]).exists()]
    text = [
        "# Results on real logs",
        "",
        "Written by `scripts/real_logs.py`; read with [real-logs.md](real-logs.md).",
        "",
    ]
    text += ["## What was converted", "", *counts(stores), "", "## Do cars follow lanes?", "", *lane_table(stores)]
    for path in stores:
        gallery(ScenarioStore.open(path), work / "pictures" / f"{path.name}.png", pictures)
    drive = partial(drive_and_write, page=page, work=work, modes=modes, workers=workers)
    text = drive([*text, "", "## Planners on Waymo", ""], planners, splits)
    if models:
        text = drive([*text, "", "## Learned from people", ""], models, tests, base=Path(models[0]).name)
    if len(models) > 2:
        drive([*text, "", "## Aligned, against its own base", ""], models[1:], tests, base=Path(models[1]).name)


def drive_and_write(
    text: list[str],
    planners: Sequence[str],
    splits: Sequence[str],
    page: Path,
    work: Path,
    modes: Sequence[str],
    workers: int,
    base: str | None = None,
) -> list[str]:
    """The text with a table behind it, which grows with every planner that is driven."""
    rows: list[Row] = []
    for split, mode, planner in product(splits, modes, planners):
        wanted = Comparison(planners=(planner,), splits=(str(work / split),), agents=(mode,))
        rows += compare(wanted, work / "drives", workers)
        page.write_text("\n".join([*text, *scores(rows, base)]) + "\n")
    return [*text, *scores(rows, base)]


def make_store(raw: Path, work: Path, name: str, workers: int) -> Path:
    """Convert one source; a store that has its card is finished."""
    source, folder, ego = CONVERSIONS[name]
    if not (work / name / "card.json").exists():
        options = LogChoice(data=(raw / folder).resolve(), ego=ego)
        convert(load_source(source), options, work / name, workers, partial(choose_egos, ego=ego))
    return work / name


def counts(stores: Sequence[Path]) -> list[str]:
    """A table of the cards, and the reasons of what failed."""
    columns = ("store", "logs", "scenarios", "maps", "seconds", "kinds", "rebuilt", "unknown", "failed")
    lines, failures = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)], []
    for path in stores:
        card = json.loads((path / "card.json").read_text())
        seconds = sorted((int(frames) - 1) / 10 for frames in card["frames"])
        long = f"{seconds[0]:.1f}" if seconds[0] == seconds[-1] else f"{seconds[0]:.1f} to {seconds[-1]:.1f}"
        words = [", ".join(f"{word} {count}" for word, count in card[name].items()) for name in columns[5:8]]
        numbers = [str(card[name]) for name in columns[1:4]]
        lines.append(f"| {' | '.join((path.name, *numbers, long, *words, str(len(card['failed']))))} |")
        failures += [f"- {path.name}: {reason.removeprefix('SourceError: ')}" for reason in card["failed"].values()]
    return [*lines, "", *failures]


@dataclass(frozen=True)
class OnLanes:
    """P poses of moving vehicles: offset (P,) in metres from the centre of the lane they follow; NaN = on no lane."""

    offset: np.ndarray

    def cells(self) -> tuple[str, ...]:
        known = self.offset[~np.isnan(self.offset)]
        if not len(known):
            return str(len(self.offset)), "n/a", "n/a", "n/a"
        share, (middle, most) = len(known) / len(self.offset), np.percentile(known, (50, 95))
        return str(len(self.offset)), f"{100 * share:.1f} %", f"{middle:.2f} m", f"{most:.2f} m"


def lane_table(stores: Sequence[Path], most: int = 100) -> list[str]:
    """How many of the moving egos and other vehicles are on a lane that runs their way, and how far from its centre."""
    lines = ["| store | who | poses | on a lane | offset, median | 95 % |", "|---|---|---|---|---|---|"]
    for path in stores:
        store = ScenarioStore.open(path)
        chosen = [store[int(i)] for i in spread(len(store), most)]
        for who, poses in (("ego", ego_poses), ("others", other_poses)):
            found = np.array([offset for scenario in chosen for offset in offsets(scenario, poses(scenario))])
            lines.append(f"| {path.name} | {who} | {' | '.join(OnLanes(found).cells())} |")
    note = (
        f"Of up to {most} scenarios of each store, once a second: vehicles at {MOVING:.0f} m/s or more, others within "
        f"{NEAR:.0f} m of the ego. On a lane: within 1 m of its area and 60 degrees of its direction."
    )
    return [*lines, "", note]


def ego_poses(scenario: Scenario) -> np.ndarray:
    """(P, 3) box centres of the ego while it moves, from the start of the drive."""
    ego = scenario.ego[scenario.start :: EVERY]
    ego = ego[ego[:, Ego.VX] >= MOVING]
    ahead = np.stack((np.cos(ego[:, Ego.HEADING]), np.sin(ego[:, Ego.HEADING])), 1)
    return np.concatenate((ego[:, :2] + PACIFICA.rear_axle_to_center * ahead, ego[:, 2:3]), 1)


def other_poses(scenario: Scenario) -> np.ndarray:
    """(P, 3) of other vehicles near the ego while they move."""
    frames = slice(scenario.start, None, EVERY)
    tracks, ego = scenario.tracks, scenario.ego[frames, :2]
    state = tracks.state[:, frames]
    speed = np.hypot(state[..., Box.VX], state[..., Box.VY])
    near = np.hypot(*np.moveaxis(state[..., :2] - ego, -1, 0)) <= NEAR
    vehicle = (tracks.type == ObjectType.VEHICLE)[:, None]
    return state[tracks.valid[:, frames] & vehicle & near & (speed >= MOVING), :3]


def offsets(scenario: Scenario, poses: np.ndarray) -> Iterator[float]:
    """Metres from the centre of the lane of each pose; NaN where it is on none that runs its way."""
    road = road_arrays(scenario.map)
    for pose in poses:
        lanes = match_lanes(road, pose[None])
        if not len(lanes):
            yield np.nan
            continue
        yield float(lane_fit(*pose, lanes[0], road.centre)[0])


def spread(count: int, wanted: int) -> np.ndarray:
    """At most `wanted` of `count` positions, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(wanted, count)).round().astype(int))


def gallery(store: ScenarioStore, file: Path, pictures: int, reach: float = NEAR) -> None:
    """Scenarios at their first moment, with all tracks; three in a row."""
    import matplotlib.pyplot as plt

    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    chosen = spread(len(store), pictures)
    rows = -(-len(chosen) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(12, 4.2 * rows), squeeze=False)
    for ax in axes.flat[len(chosen) :]:
        ax.axis("off")
    for ax, index in zip(axes.flat, chosen):
        draw_scenario(store[int(index)], ax, 0, reach)
    figure.tight_layout()
    figure.savefig(file, dpi=80)
    plt.close(figure)


def scores(rows: Sequence[Row], base: str | None = None) -> list[str]:
    """The table x100 with 95 % intervals, and what its drives are."""
    note = "x100, 95 % intervals from 10,000 resamples of logs; n/a: not in the map."
    return [table(rows, base), "", note, *footnote(rows).splitlines()]


if __name__ == "__main__":
    tyro.cli(main)
