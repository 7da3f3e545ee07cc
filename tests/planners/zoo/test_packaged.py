"""The planners that were trained here and are packaged: known by name, small, told of in a card, and ready to plan."""

import json

import numpy as np
import pytest
import torch

import radp
from radp.planners.registry import UnknownPlanner
from radp.planners.zoo.checkpoint import folder_kind, save_folder
from radp.planners.zoo.kinds import KINDS
from radp.planners.zoo.planner import make_planner
from radp.report.reproduction import TRAINED
from radp.sim.replay import observe_logs
from radp.training.zoo import MINI
from radp.zoo import MODELS, list_models
from tests.made_scenarios import made_scenario, thing

PACKAGED = [name for name in list_models() if folder_kind(MODELS / name) is not None]
MOST_BYTES = 12_000_000  # of all their weights together


def test_every_one_of_them_is_in_the_report_and_all_are_small():
    assert set(PACKAGED) <= set(TRAINED)
    assert sum((MODELS / name / "model.safetensors").stat().st_size for name in PACKAGED) <= MOST_BYTES


@pytest.mark.parametrize("name", PACKAGED)
def test_a_packaged_planner_is_known_by_name_and_has_a_card(name):
    planner = radp.load_planner(name)
    assert planner.name == name and name == f"{planner.kind.name}-mini"
    card = (MODELS / name / "CARD.md").read_text()
    assert card.startswith(f"# {name}\n") and all(f"## {part}" in card for part in ("Data", "Training", "Closed loop"))
    about = json.loads((MODELS / name / "config.json").read_text())
    assert about["training"]["samples"] > 10_000 and "/" not in json.dumps(about["training"])


@pytest.mark.parametrize("name", PACKAGED)
def test_a_packaged_planner_drives_on_along_an_empty_road(name):
    plan = radp.load_planner(name).plan(observe_logs([made_scenario(speed=8.0)]))
    ahead = plan.trajectory[0, -1, 0]
    assert bool(torch.isfinite(plan.trajectory).all()) and 5.0 < float(ahead) < 200.0


def test_guidance_is_refused_with_the_reason(tmp_path):
    torch.manual_seed(0)
    folder = save_folder("pdm-open", KINDS["pdm-open"].network(MINI["pdm-open"]), tmp_path / "mine")
    with pytest.raises(UnknownPlanner, match="guidance is for diffusion planners"):
        radp.load_planner(f"{folder}+guidance")


def test_only_plantf_trained_here_knows_cars_from_people_in_closed_loop():
    torch.manual_seed(0)
    seen = []
    for config in (KINDS["plantf"].published, MINI["plantf"]):
        planner = make_planner("plantf", KINDS["plantf"].network(config))
        planner.poses = lambda samples: seen.append(samples[0]["agent/category"]) or torch.zeros(1, 80, 3)
        planner.plan(observe_logs([made_scenario(things=(thing("car", 55.0, speed=4.0),))]))
    assert np.array_equal(seen[0], [0, 0]) and np.array_equal(seen[1], [0, 1])
