"""The watch over states: avoidance is told from caution, by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from radp.evaluation.settings import StateWatch
from radp.evaluation.states import MEASURES, _rows, _short, measures, state_values
from radp.report.states_table import states_table
from radp.rules import RuleContext
from tests.rules.hand_made import scene, straight_plan, straight_route

LEAD = (30.0, 0.0, 0.0, 0.0, 4.5)  # a standing car, 30 m ahead


class Road:
    """Even rows have the standing car, odd rows are empty."""

    def __init__(self) -> None:
        future = torch.zeros(1, 6, 80, 3, dtype=torch.float64)
        future[0, 0, :, 0] = 30.0
        self.kinds = [
            replace(scene(straight_route(), agents=[LEAD]), neighbor_agents_future=future),
            scene(straight_route()),
        ]

    def __len__(self) -> int:
        return 40

    def read(self, rows: np.ndarray):
        (kind,) = {int(row) % 2 for row in rows}
        return self.kinds[kind][[0] * len(rows)]


class Speeds:
    """Drives straight on, at one speed where somebody is ahead and at another where nobody is."""

    model = SimpleNamespace(config=SimpleNamespace(predicted=7, horizon=80))

    def __init__(self, ahead: float, free: float) -> None:
        self.ahead, self.free = ahead, free

    def draw(self, now, noise):
        speed = self.ahead if bool(now.neighbor_agents_past.any()) else self.free
        shape = (len(now), noise.shape[1], noise.shape[2], 80, 4)
        return SimpleNamespace(trajectories=straight_plan(speed=speed)[:, None, None].expand(shape))


def test_measures_by_hand():
    context = RuleContext.from_scene(scene(straight_route(), agents=[LEAD]))
    base = straight_plan(speed=10.0)
    found = dict(zip(MEASURES, measures(base, base, context)[:, 0].tolist()))
    assert found == {"overlap": 1.0, "near": 1.0, "near_miss": 1.0, "off_road": 0.0, "moved": 0.0, "shorter": 0.0}
    found = dict(zip(MEASURES, measures(straight_plan(speed=5.0), base, context)[:, 0].tolist()))
    assert (found["overlap"], found["near"]) == (0.0, 0.0)  # the car is reached after 4.8 s
    assert found["moved"] == pytest.approx(0.5 * np.arange(1, 81).mean()) and found["shorter"] == pytest.approx(40.0)


def test_only_what_is_urgent_is_measured_where_that_is_asked_for():
    """The car is met after 2.4 s, its near miss is 0.9 s before: at 10 m/s it takes 4 s to stop, at 2 m/s 2.2 s."""
    for speed, expected in ((10.0, [1.0, 1.0, 1.0]), (2.0, [0.0, 0.0, 1.0])):
        context = RuleContext.from_scene(scene(straight_route(), agents=[LEAD], speed=speed))
        plan = straight_plan(speed=10.0)
        assert measures(plan, plan, context)[:3, 0].tolist() == [1.0, 1.0, 1.0]
        assert measures(plan, plan, context, urgent=True)[:3, 0].tolist() == expected


def test_avoidance_and_caution_look_different():
    base, avoids, cautious = Speeds(10.0, 10.0), Speeds(2.0, 10.0), Speeds(8.0, 8.0)
    watch = StateWatch(planners=("base", "avoids", "cautious"), draws=2)
    rows = []
    for kind, places in (("focus", np.arange(0, 40, 2)), ("ordinary", np.arange(1, 40, 2))):
        values = state_values([base, avoids, cautious], Road(), places, watch)
        assert values.shape == (3, len(MEASURES), 20)
        rows += _rows(kind, values, watch.planners, places // 4)  # two states of a drive
    found = {(row.planner, row.kind): row for row in rows}
    assert found["base", "focus"].means["overlap"].value == 1.0 and not found["base", "focus"].differences
    assert found["avoids", "focus"].differences["overlap"].value == -1.0
    assert found["avoids", "ordinary"].means["moved"].value == 0.0
    assert found["cautious", "focus"].means["overlap"].value == 1.0  # 23.7 m at 8 m/s: after 3 s
    assert found["cautious", "ordinary"].means["moved"].value == pytest.approx(0.2 * np.arange(1, 81).mean())
    assert found["avoids", "focus"].drives == 10 and found["avoids", "focus"].states == 20
    text = states_table(rows).markdown()
    assert "| avoids | focus: 20 of 10 drives | 0.0 [0.0, 0.0] (-100.0 [-100.0, -100.0])" in text
    assert found["avoids", "focus"].to_json()["differences"]["overlap"]["value"] == -1.0


def test_planners_whose_folders_have_one_name_are_told_apart():
    assert _short(["diffusion-planner-mini", "runs/a/planner", "runs/b/last"]) == [
        "diffusion-planner-mini",
        "planner",
        "last",
    ]
    assert _short(["base", "runs/a/planner", "runs/b/planner"]) == ["base", "runs/a/planner", "runs/b/planner"]
