"""Features of planTF, PLUTO and GameFormer against those that the published builders made of golden scenarios."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from radp.geometry.ragged import Polygons, Ragged
from radp.planners.zoo.gameformer_features import gameformer_sample
from radp.planners.zoo.places import by_length
from radp.planners.zoo.pluto_features import pluto_sample
from radp.planners.zoo.vector_features import PLANTF_REACH, to_ego_frame, vector_sample
from radp.planners.zoo.view import view_of_log
from radp.road.road_map import Areas
from radp.scenario.neutral_json import read_scenario
from tests.planners.zoo.golden import PLANNERS, read_golden
from tests.shared_data import NUPLAN_GOLDEN, shared_files, shared_params

pytestmark = pytest.mark.golden
NOW = 30  # frame of the scenarios that the golden features are about


@cache
def log(name):
    return read_scenario(NUPLAN_GOLDEN / "closed_loop" / f"{name}.scenario.json.gz")


def scenario_of(name, arrays):
    """A closed-loop scenario with the crosswalks that the golden file adds to it."""
    scenario = log(name)
    if name != "cl_cross_a" or "crosswalk_polygons" not in arrays:
        return scenario
    polygons = [polygon[~np.isnan(polygon).any(-1)] for polygon in arrays["crosswalk_polygons"]]
    crosswalks = Areas(tuple(f"w{i}" for i in range(len(polygons))), Polygons.from_exteriors(polygons))
    return replace(scenario, map=replace(scenario.map, crosswalks=crosswalks))


def cases(folder):
    found = []
    for path in shared_files(f"{PLANNERS}/{folder}/features*.npz"):
        names = sorted({name.split("/")[0] for name in np.load(path).files if "/sim/" in name})
        found += [pytest.param(path, name, id=f"{path.stem}-{name}") for name in names]
    return found or shared_params("no such file")


@pytest.mark.parametrize("path, name", cases("plantf"))
@pytest.mark.parametrize("mode, future", [("sim", 0), ("train", 80)])
def test_plantf_features(path, name, mode, future):
    golden = read_golden(path)
    view = view_of_log(scenario_of(name, golden.arrays), NOW, future=future)
    sample = vector_sample(view, PLANTF_REACH)
    expected = {k: v.numpy() for k, v in golden.below(f"{name}/{mode}/").items()}
    assert set(expected) <= set(sample)
    valid = expected["agent/valid_mask"]
    for key, value in expected.items():
        if key in ("agent/position", "agent/heading", "agent/velocity"):
            np.testing.assert_allclose(sample[key][valid], value[valid], atol=1e-4, err_msg=key)
        else:
            np.testing.assert_allclose(sample[key], value, atol=1e-4, err_msg=key)


@pytest.mark.parametrize("path, name", cases("gameformer"))
def test_gameformer_features(path, name):
    golden = read_golden(path)
    view = view_of_log(scenario_of(name, golden.arrays), NOW, history=22, future=0)
    sample = gameformer_sample(view)
    expected = golden.below(f"{name}/sim/")
    assert set(expected) == set(sample)
    for key, value in expected.items():
        np.testing.assert_allclose(sample[key], value.numpy(), atol=1e-4, err_msg=key)


@pytest.mark.parametrize("path", shared_params(f"{PLANNERS}/plantf/golden_*.npz"))
def test_frame_of_the_ego(path):
    golden = read_golden(path)
    world = {name: value.numpy() for name, value in golden.below("norm_in/").items()}
    for name, value in golden.below("norm_out/").items():
        np.testing.assert_allclose(
            to_ego_frame(world, PLANTF_REACH.radius)[name], value.numpy(), atol=1e-6, err_msg=name
        )


def dense(scenario):
    """Every centre line with a vertex each 0.25 m, as the golden files' `_dense` scenarios have it."""
    lines = []
    for line in scenario.map.centerlines:
        length = np.hypot(*np.diff(line, axis=0).T).sum()
        lines.append(by_length(line, round(length / 0.25) + 1))
    return replace(scenario, map=replace(scenario.map, centerlines=Ragged.from_rows(lines, width=2)))


@pytest.mark.parametrize("path, name", cases("pluto"))
@pytest.mark.parametrize("mode, future", [("sim", 0), ("train", 80)])
def test_pluto_reference_lines_and_static_objects(path, name, mode, future):
    golden = read_golden(path)
    scenario = log(name.removesuffix("_dense"))
    view = view_of_log(dense(scenario) if name.endswith("_dense") else scenario, NOW, future=future)
    sample = pluto_sample(view)
    expected = {k: v.numpy() for k, v in golden.below(f"{name}/{mode}/").items()}
    valid = expected["reference_line/valid_mask"]
    for key, value in expected.items():
        if key.startswith("causal/") or key == "agent/valid_mask_ego":
            continue
        if key.startswith("reference_line/") and value.shape[:2] == valid.shape:
            np.testing.assert_allclose(sample[key][valid], value[valid], atol=1e-4, err_msg=key)
        else:
            np.testing.assert_allclose(sample[key], value, atol=1e-4, err_msg=key)
