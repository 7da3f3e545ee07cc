"""Planning problems of CommonRoad as egos, and logs in which nobody can be one."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from radp.metrics.score import evaluate
from radp.planners import load_planner
from radp.scenario import PACIFICA, Ego
from radp.scenario.egos import choose_egos
from radp.scenario.splits import open_split
from radp.sim.simulate import simulate
from radp.sources.convert import convert, load_source
from radp.sources.settings import LogChoice
from tests.sources.made_formats import LANES, commonroad


def with_problem(goal: str = "rectangle", position: bool = True) -> ET.Element:
    """The made document with one problem: it begins on the first lane at 7 m/s, and ends on the second."""
    root = commonroad()
    first, second = (LANES[name] for name in list(LANES)[:2])
    dx, dy = first[1] - first[0]
    problem = ET.SubElement(root, "planningProblem", id="9")
    state = ET.SubElement(problem, "initialState")
    if position:
        point = ET.SubElement(ET.SubElement(state, "position"), "point")
        for name, value in zip("xy", first[len(first) // 4]):
            ET.SubElement(point, name).text = str(value)
    for name, value in (("orientation", math.atan2(dy, dx)), ("velocity", 7.0), ("time", 5)):
        ET.SubElement(ET.SubElement(state, name), "exact").text = str(value)
    place = ET.SubElement(ET.SubElement(problem, "goalState"), "position")
    if goal == "rectangle":
        centre = ET.SubElement(ET.SubElement(place, "rectangle"), "center")
        for name, value in zip("xy", second[-1]):
            ET.SubElement(centre, name).text = str(value)
    elif goal == "lanelet":
        ET.SubElement(place, "lanelet", ref=list(LANES)[1])
    return root


def converted(tmp_path: Path, root: ET.Element, ego: str) -> tuple[Path, dict[str, Any]]:
    """The store and its card."""
    (tmp_path / "made.xml").write_bytes(ET.tostring(root, encoding="utf-8"))
    logs, finish = LogChoice(data=tmp_path / "made.xml", ego=ego), partial(choose_egos, ego=ego)
    card = convert(load_source("commonroad"), logs, tmp_path / "store", finish=finish, isolated=False)
    return tmp_path / "store", card


@pytest.mark.parametrize("goal", ["rectangle", "lanelet", "none"])
def test_a_problem_is_an_ego_without_expert(tmp_path: Path, goal: str) -> None:
    (scenario,) = open_split(converted(tmp_path, with_problem(goal), "problem")[0])
    first = next(iter(LANES.values()))
    start = scenario.ego[scenario.start]
    ahead = PACIFICA.rear_axle_to_center * np.array([math.cos(start[2]), math.sin(start[2])])
    assert scenario.token == "made:problem-9"
    assert start[: Ego.HEADING] + ahead == pytest.approx(first[len(first) // 4])
    assert start[Ego.VX] == pytest.approx(7.0)
    assert scenario.start == 20, "two seconds of history"
    assert scenario.route
    assert (scenario.goal is None) == (goal == "none")
    assert "expert" in scenario.tags["unknown"]
    (drive,) = simulate(load_planner("constant_velocity"), [scenario], agents="nonreactive")
    metrics = evaluate(drive).metrics
    assert not metrics["ego_progress_along_expert_route"].valid
    assert not metrics["ego_is_making_progress"].valid
    assert metrics["no_ego_at_fault_collisions"].valid


def test_a_problem_without_a_place_is_refused_with_its_reason(tmp_path: Path) -> None:
    _, card = converted(tmp_path, with_problem(position=False), "problem")
    assert "initial position is not a point" in card["failed"]["made:problem-9"]


def test_a_file_without_problems_says_so(tmp_path: Path) -> None:
    _, card = converted(tmp_path, commonroad(), "problem")
    assert "it has no planning problem; choose --ego all" in card["failed"]["made.xml"]


def test_where_nobody_is_left_each_candidate_has_its_reason(tmp_path: Path) -> None:
    root = commonroad()
    late, *others = root.findall("obstacle")
    for state in late.findall("state")[-3:]:
        late.remove(state)
    for obstacle in others:
        for point in obstacle.iter("point"):
            point[0].text, point[1].text = "0.0", "0.0"
    _, card = converted(tmp_path, root, "all")
    assert card["scenarios"] == 0
    said = card["empty"]["made.xml"]
    assert f"{late.attrib['id']} is there in frames 0 to 87, not 20 to 90" in said
    cars = [o.attrib["id"] for o in others if o.findtext("type") == "car"]
    assert all(f"{name} drives 0.0 m" in said for name in cars)
