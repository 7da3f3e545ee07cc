"""Features of PDM-Open, PDM-Offset and UrbanDriver against those that the published builders made of golden logs."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from radp.planners.zoo.batch import collate
from radp.planners.zoo.kinds import KINDS, times_of
from radp.planners.zoo.pdm_features import centre_line, corrected_route, pdm_sample, relative, starting_lane
from radp.planners.zoo.pdm_open import PDMConfig, PDMOpen
from radp.planners.zoo.places import wrap
from radp.planners.zoo.planner import fuse, make_planner, plan_of
from radp.planners.zoo.urban_driver import UrbanDriver
from radp.planners.zoo.urban_driver_features import assembled, raw_features
from radp.planners.zoo.view import view_of_log
from radp.scenario import Ego
from radp.sources.nuplan.log_db import LogDb
from radp.sources.nuplan.source import NUPLAN
from radp.sources.settings import LogChoice
from tests.planners.zoo.golden import PLANNERS, read_golden
from tests.shared_data import NUPLAN_GOLDEN, shared_params

pytest.importorskip("pyogrio", reason='pip install "radp[nuplan]"')
pytestmark = pytest.mark.golden
COLUMNS = ("x", "y", "heading", "vx", "vy", "ax", "ay", "yaw_rate", "yaw_accel", "steering")


def folder_of(path):
    """Log and map that a feature file belongs to."""
    own = path.parent / "data" / path.stem
    return own if own.is_dir() else NUPLAN_GOLDEN / "files" / path.stem


def scenario_of(folder):
    (item,) = NUPLAN.items(LogChoice(db=folder, maps=folder / "maps"))
    (scenario,) = NUPLAN.scenarios(item)
    return scenario


@pytest.fixture(scope="module")
def case_of():
    return cache(made_case)


@pytest.fixture(params=shared_params(f"{PLANNERS}/features_*/*.npz"), scope="module")
def case(request, case_of):
    return case_of(request.param)


def made_case(path):
    """Golden arrays of a feature file, and the views of its iterations."""
    golden = read_golden(path)
    folder = folder_of(path)
    scenario = scenario_of(folder)
    names = golden.arrays["meta/state_columns"].tolist()
    rows = [names.index(name) for name in COLUMNS]
    views = {}
    with LogDb(folder / "log.db") as log:
        for i in golden.arrays["meta/iterations"].tolist():
            view = view_of_log(scenario, scenario.start + i, future=0)
            ego = np.zeros((21, len(Ego)))
            ego[:, : Ego.STEERING + 1] = golden.arrays[f"sim/{i}/ego_history"][-21:, rows]
            lights, states = listed_lights(log, scenario, scenario.start + i)
            views[i] = replace(
                view, ego=ego, time_us=golden.arrays[f"sim/{i}/ego_history_time_us"][-21:],
                start=scenario.ego[scenario.start, :3], light_lanes=lights, light_states=states,
            )  # fmt: skip
    return golden.arrays, views


def listed_lights(log, scenario, frame):
    """Lights as the log lists them: a scenario leaves out those of numbers that only a lane has."""
    (found,) = log.frames(*(scenario.time_us[[frame, frame]].tolist())).tokens
    _, names, which, states = log.lights([found])
    index = scenario.map.lane_index
    lanes = np.array([index.get(f"{names[i]}c", index.get(names[i], -1)) for i in which], dtype=int)
    return lanes[lanes >= 0], states[lanes >= 0]


def plain(name):
    return name.removesuffix("c")


def test_route_starting_lane_and_centre_line(case):
    arrays, views = case
    for i, view in views.items():
        blocks = corrected_route(view)
        assert [plain(view.road.roadblocks.ids[b]) for b in blocks] == [
            plain(name) for name in arrays[f"sim/{i}/pdm/route_roadblock_ids"].tolist()
        ]
        lane = starting_lane(view, blocks)
        assert plain(view.road.lane_ids[lane]) == str(arrays[f"sim/{i}/pdm/start_lane_id"])
        np.testing.assert_allclose(centre_line(view), arrays[f"sim/{i}/pdm/centerline"], atol=1e-4)


def test_pdm_features(case):
    arrays, views = case
    for i, view in views.items():
        states, time = arrays[f"sim/{i}/pdm_closed/states"], arrays[f"sim/{i}/pdm_closed/states_time_us"]
        plan = np.column_stack(((time - view.time_us[-1]) * 1e-6, states[:, :3]))
        for name, value in pdm_sample(view, plan).items():
            np.testing.assert_allclose(value, arrays[f"sim/{i}/pdm_hybrid/{name}"], atol=1e-4, err_msg=name)


def test_urban_driver_features(case):
    arrays, views = case
    for i, view in views.items():
        for name, value in raw_features(view).items():
            expected = arrays[f"sim/{i}/ud/{name}"]
            if name == "agents_VEHICLE":  # the database's order of a frame is not kept
                value, expected = (rows[:, np.lexsort(rows[-1, :, :2].round(2).T)] for rows in (value, expected))
            np.testing.assert_allclose(value, expected, atol=1e-4, err_msg=name)


def test_batches_are_padded_with_zeros():
    batch = collate([{"a": np.ones((2, 3)), "n": np.array(1)}, {"a": np.ones((1, 3)), "n": np.array(2)}])
    assert batch["a"].dtype == torch.float32
    assert batch["a"].tolist() == [[[1, 1, 1], [1, 1, 1]], [[1, 1, 1], [0, 0, 0]]]
    assert batch["n"].tolist() == [1, 2]


def weights_of(case_path, folder, network):
    """Outputs of a features folder were made with the weights of golden_a."""
    return read_golden(case_path.parents[1] / folder / "golden_a.npz").load(network, left_out=("static_embedding",))


def world_states(plan, view):
    """(n, 3) poses in the world and (n,) microseconds of a plan of one world."""
    x, y, c, s = plan.trajectory[0].double().numpy().T
    cos, sin = np.cos(view.pose[2]), np.sin(view.pose[2])
    heading = np.arctan2(s, c) + view.pose[2]
    place = np.column_stack((view.pose[0] + cos * x - sin * y, view.pose[1] + sin * x + cos * y))
    return place, heading, view.time_us[-1] + plan.time_grid()[0].numpy() * 1e6


@pytest.mark.parametrize("path", shared_params(f"{PLANNERS}/features_*/*.npz"))
def test_plans_of_the_three_planners(path, case_of):
    arrays, views = case_of(path)
    networks = {
        "pdm_open": ("pdm-open", weights_of(path, "pdm_open", PDMOpen())),
        "pdm_hybrid": ("pdm-hybrid", weights_of(path, "pdm_hybrid", PDMOpen(PDMConfig(offset=True)))),
        "ud": ("urban-driver", weights_of(path, "urban_driver", UrbanDriver())),
    }
    for i, view in views.items():
        states, time = arrays[f"sim/{i}/pdm_closed/states"], arrays[f"sim/{i}/pdm_closed/states_time_us"]
        closed = np.column_stack(((time - view.time_us[-1]) * 1e-6, states[:, :3]))
        for name, (kind, network) in networks.items():
            if kind == "urban-driver":  # of more than 30 vehicles the first 30 count, in the database's order
                sample = assembled(raw_features(view) | {"agents_VEHICLE": arrays[f"sim/{i}/ud/agents_VEHICLE"]})
            else:
                sample = pdm_sample(view, closed if kind == "pdm-hybrid" else None)
            planner = make_planner(kind, network)
            output = planner.poses([sample])
            np.testing.assert_allclose(output[0], arrays[f"sim/{i}/{name}/output"], atol=1e-4, err_msg=name)
            plan = plan_of(output, times_of(KINDS[kind], 16))
            if kind == "pdm-hybrid":
                local = torch.from_numpy(relative(closed[:, 1:], view.pose))[None]
                plan = fuse(plan_of(local, torch.from_numpy(closed[:, 0])), output)
            place, heading, when = world_states(plan, view)
            first = 0 if kind == "pdm-hybrid" else 1  # the present state stands in front of the others
            expected = arrays[f"sim/{i}/{name}/states"][first:]
            np.testing.assert_allclose(place, expected[:, :2], atol=1e-4)
            np.testing.assert_allclose(wrap(heading - expected[:, 2]), 0.0, atol=1e-4)
            np.testing.assert_allclose(when, arrays[f"sim/{i}/{name}/states_time_us"][first:], atol=1.5)
