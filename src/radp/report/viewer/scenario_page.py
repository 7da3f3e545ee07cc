"""The page of one scenario: its road and one or two drives through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from radp.evaluation.endpoints import PAPER
from radp.incidents.words import MOST_LEVEL
from radp.metrics.drive import box_centers
from radp.report.viewer.drive import DriveReport, drive_data
from radp.report.viewer.explain import rule_words, rules_reported
from radp.report.viewer.pack import ANGLE_STEP, Grid, pack
from radp.report.viewer.page import render
from radp.report.viewer.road import RoadPicture, crop_road
from radp.report.viewer.words import RISKS, kind_words
from radp.scenario import PACIFICA, ObjectType, Scenario

MOST_BYTES = 2_000_000  # of a page
REACHES = (120.0, 90.0, 60.0, 40.0, 25.0, 15.0)  # m around the drive that are shown; the first that fits
GRID_MARGIN = 350.0  # m around the drive that plans and forecasts may reach
STYLES, SCRIPTS = (
    ("base.css", "scenario.css"),
    (
        "theme.js",
        "decode.js",
        "player.js",
        "overlays.js",
        "scene.js",
        "curves.js",
        "card.js",
        "incidents.js",
        "weights.js",
        "svg.js",
        "exports.js",
        "address.js",
        "scenario.js",
    ),
)


def scenario_page(
    drives: Sequence[DriveReport],
    links: dict[str, str | None],
    calibrated: bool,
    weights: Sequence[dict[str, float]] | None = None,
) -> tuple[str, RoadPicture]:
    """HTML of at most 2 MB, and the road that it shows. `links`: names of the pages before and after, and the start.

    `weights`: the drives are of one planner at these weights of rules, and sliders choose the one that is shown.
    """
    scenario = drives[0].rollout.scenario
    paths = [drive.rollout.ego[:, :2] for drive in drives]
    title = f"{kind_words(scenario.kind)} · {scenario.token}"
    for reach in REACHES:
        road = crop_road(scenario, paths, reach)
        data = page_data(drives, road, reach, calibrated, weights)
        page = render("scenario.html", title, {**data, "links": links}, STYLES, SCRIPTS)
        if len(page.encode()) <= MOST_BYTES:
            break
    return page, road


def page_data(
    drives: Sequence[DriveReport],
    road: RoadPicture,
    reach: float,
    calibrated: bool,
    weights: Sequence[dict[str, float]] | None = None,
) -> dict[str, Any]:
    """Everything the scripts need, JSON-ready."""
    scenario = drives[0].rollout.scenario
    samples = max(len(drive.rollout.ego) for drive in drives)
    expert = scenario.ego[scenario.start : scenario.start + samples]
    points = np.concatenate([expert[:, :2], *(drive.rollout.ego[:, :2] for drive in drives)])
    grid = Grid.around(points, GRID_MARGIN)
    rules = rules_reported(drive.explanation for drive in drives)
    return {
        "token": scenario.token,
        "kind": kind_words(scenario.kind),
        "source": scenario.source,
        "step": grid.step,
        "angle": ANGLE_STEP,
        "samples": samples,
        "car": [PACIFICA.length, PACIFICA.width],
        "types": [kind.name.lower().replace("_", " ") for kind in ObjectType],
        "rules": rule_words(rules),
        "risks": [{"name": e.name, "rule": e.channel, "words": RISKS[e.name]} for e in PAPER],
        "calibrated": calibrated,
        "most": MOST_LEVEL,
        "rate": 1.0 / scenario.dt,
        "road": _road(scenario, road, samples, grid),
        "expert": pack(grid.positions(box_centers(expert))),
        "goal": None if scenario.goal is None else grid.positions(scenario.goal[:2]).tolist(),
        "drives": [
            drive_data(drive, grid, reach, rules, overlays=weights is None or i == 0) for i, drive in enumerate(drives)
        ],
        "weights": None if weights is None else list(weights),
    }


def _road(scenario: Scenario, road: RoadPicture, samples: int, grid: Grid) -> dict[str, Any]:
    window = slice(scenario.start, scenario.start + samples)
    lines = ("road", "route", "crosswalks", "stop_lines", "edges", "dividers", "connectors")
    return {
        **{name: grid.pack_lines(getattr(road, name)) for name in lines},
        "bars": pack(grid.positions(road.light_bars.reshape(-1, 2))),
        "lights": pack(scenario.lights.state[window][:, road.light_columns]),
    }
