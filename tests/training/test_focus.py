"""Samples worth a second look: found by contact of the plan, refused for another folder, and half of each batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.rules.body import EGO_WIDTH
from radp.runs.errors import BadInput
from radp.sim.plan import Plan
from radp.training.align import AlignTask
from radp.training.data import Mixture
from radp.training.focus import Focus, find_focus, focus_rows
from radp.training.settings import AlignConfig, FocusSearch, LoopConfig
from tests.rules.hand_made import scene, straight_plan, straight_route

LEAD = (30.0, 0.0, 0.0, 0.0, 4.5)  # a standing car, 30 m ahead


class Road:
    """Even rows have the standing car, odd rows are empty; the logged ego stays where it is."""

    def __init__(self) -> None:
        still = torch.zeros(1, 80, 3, dtype=torch.float64)
        still[..., 0] = 0.1
        self.kinds = [
            replace(scene(straight_route(), agents=agents), ego_agent_future=still, neighbor_agents_future=None)
            for agents in ([LEAD], [(30.0, 40.0, 0.0, 0.0, 4.5)])
        ]

    def __len__(self) -> int:
        return 40

    def read(self, rows: np.ndarray):
        parts = [self.kinds[int(row) % 2] for row in rows]
        return parts[0] if len(parts) == 1 else _stack(parts)


def _stack(parts):
    fields = {k: v for k, v in parts[0].__dict__.items() if isinstance(v, torch.Tensor)}
    return replace(parts[0], **{k: torch.cat([getattr(part, k) for part in parts]) for k in fields})


class Straight:
    name = "straight"

    def plan(self, now, generator=None) -> Plan:
        return Plan(trajectory=straight_plan(speed=10.0).expand(len(now), -1, -1))


def test_rows_with_contact_are_found_and_kept(tmp_path):
    road = Road()
    found = find_focus(Straight(), road, FocusSearch(samples=20, seed=3), batch=7)
    assert found.rows and all(row % 2 == 0 for row in found.rows)
    looked = np.random.default_rng([3, 13]).permutation(40)[:20]
    assert sorted(found.rows) == sorted(row for row in looked.tolist() if row % 2 == 0)
    assert not find_focus(Straight(), road, FocusSearch(samples=20, seed=3, within=2.0)).rows
    found.save(tmp_path / "focus.json")
    assert Focus.load(tmp_path / "focus.json") == found
    assert found.rows_in(road) == found.rows
    with pytest.raises(BadInput, match="made from 99"):
        replace(found, of=99).rows_in(road)
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(BadInput, match="radp train focus"):
        Focus.load(tmp_path / "other.json")


class Late:
    """Drives towards the standing car at full speed and stands a metre before it."""

    name = "late"

    def plan(self, now, generator=None) -> Plan:
        plan = straight_plan(speed=10.0)
        plan[..., 0] = plan[..., 0].clamp(max=22.5)
        return Plan(trajectory=plan.expand(len(now), -1, -1))


def test_near_misses_count_where_they_are_asked_for():
    usual = find_focus(Late(), Road(), FocusSearch(samples=20))
    wanted = find_focus(Late(), Road(), FocusSearch(samples=20, near_misses=True))
    assert not usual.rows and not usual.near_misses
    assert wanted.near_misses and wanted.rows and all(row % 2 == 0 for row in wanted.rows)


def test_only_what_is_urgent_counts_where_that_is_asked_for():
    """The car is met after 2.4 s: at 10 m/s it takes longer to stop, at 2 m/s it does not."""
    urgent = FocusSearch(samples=40, own=True, urgent=True)
    assert find_focus(Straight(), Road(), urgent).rows == list(range(0, 40, 2))
    slow = Road()
    slow.kinds = [
        replace(kind, ego_current_state=scene(straight_route(), speed=2.0).ego_current_state) for kind in slow.kinds
    ]
    assert not find_focus(Straight(), slow, urgent).rows
    assert find_focus(Straight(), slow, replace(urgent, urgent=False)).rows == list(range(0, 40, 2))


@pytest.mark.parametrize(
    ("seconds", "speed", "listed"), [(8, 10.2, 0), (8, 9.0, 40), (8, 11.0, 40), (2, 9.6, 0), (2, 9.0, 40)]
)
def test_states_whose_drive_went_on_otherwise_are_listed(seconds, speed, listed):
    """The plan goes at 10 m/s; a log that ends after 2 s is compared so far alone."""
    drive = torch.zeros(1, 80, 3, dtype=torch.float64)
    drive[0, : 10 * seconds, 0] = 0.1 * speed * torch.arange(1, 10 * seconds + 1)
    road = Road()
    road.kinds = [replace(kind, ego_agent_future=drive) for kind in road.kinds]
    found = find_focus(Straight(), road, FocusSearch(samples=40, within=4.0, driven=1.0))
    assert len(found.rows) == listed and found.driven == 1.0


def test_the_others_may_go_straight_on_instead_of_as_they_did():
    """A car ahead keeps its distance while it drives on. In the even rows it stopped, in the odd ones it did not."""
    kinds = []
    for speed in (1.0, 10.0):
        future = torch.zeros(1, 6, 80, 3, dtype=torch.float64)
        future[0, 0, :, 0] = 30.0 + 0.1 * speed * torch.arange(1, 81)
        now = scene(straight_route(), agents=[(30.0, 0.0, 0.0, 10.0, 4.5)])
        kinds.append(replace(now, ego_agent_future=torch.zeros(1, 80, 3).double(), neighbor_agents_future=future))
    road = Road()
    road.kinds = kinds
    wanted = FocusSearch(samples=40, within=4.0, own=True)
    assert find_focus(Straight(), road, wanted).rows == list(range(0, 40, 2))
    straight = find_focus(Straight(), road, replace(wanted, contexts="constant"))
    assert not straight.rows and straight.contexts == "constant"
    road.kinds = [replace(kind, neighbor_agents_past=Road().kinds[0].neighbor_agents_past) for kind in kinds]
    both = [replace(wanted, contexts=contexts) for contexts in ("executed", "constant")]
    assert [len(find_focus(Straight(), road, one).rows) for one in both] == [20, 40]  # now it stands, and may start


def test_states_that_no_copy_mends_may_be_left_out():
    """From 10 m/s one can stop before the car 30 m ahead, not before one whose centre is 7.5 m ahead."""
    road, close = Road(), scene(agents=[(7.5, 0.0, 0.0, 0.0, 4.5)])
    road.kinds[1] = replace(road.kinds[0], neighbor_agents_past=close.neighbor_agents_past)
    wanted = FocusSearch(samples=40, within=4.0, margin=0.3, own=True)
    assert len(find_focus(Straight(), road, wanted).rows) == 40
    mendable = find_focus(Straight(), road, replace(wanted, mendable=True))
    assert mendable.rows == list(range(0, 40, 2)) and mendable.mendable


class Beside:
    """Passes the standing car with 0.2 m to spare, on the border of its lane."""

    name = "beside"

    def plan(self, now, generator=None) -> Plan:
        aside = EGO_WIDTH / 2 + 1.0 + 0.2
        return Plan(trajectory=straight_plan(speed=10.0, y=aside).expand(len(now), -1, -1))


def test_own_states_count_near_misses_corners_and_executed_collisions():
    road = Road()
    near = FocusSearch(samples=40, within=4.0, margin=0.3, own=True)
    found = find_focus(Beside(), road, near)
    assert found.rows == list(range(0, 40, 2)) and found.others() == list(range(1, 40, 2))
    assert not find_focus(Beside(), road, replace(near, margin=0.1)).rows
    assert len(find_focus(Beside(), road, replace(near, margin=0.1, corners=True)).rows) == 40  # 0.6 m over the border
    into = torch.zeros(1, 80, 3, dtype=torch.float64)
    into[..., 0] = torch.arange(1, 81)  # what was executed hit the car
    road.kinds = [replace(kind, ego_agent_future=into) for kind in road.kinds]
    assert not find_focus(Straight(), road, FocusSearch(samples=40)).rows
    assert len(find_focus(Straight(), road, replace(near, margin=0.0)).rows) == 20


class Noisy:
    """Drives straight on at a speed that its noise decides, or stands."""

    name = "noisy"

    def __init__(self, share: float) -> None:
        self.share = share

    def plan(self, now, generator) -> Plan:
        speed = self.share * (4.0 + torch.rand(len(now), 1, 1, generator=generator, dtype=torch.float64))
        plan = straight_plan(speed=1.0).expand(len(now), -1, -1).clone()
        plan[..., :1] *= speed
        return Plan(trajectory=plan)


def test_states_on_which_another_planner_waits_are_listed():
    road = Road()
    empty = FocusSearch(samples=40, within=4.0, margin=0.3, own=True, lag=2.0)
    assert not find_focus(Noisy(1.0), road, empty, batch=7).rows  # stops short of the car within 4 s
    assert not find_focus(Noisy(1.0), road, empty, batch=7, slower=Noisy(1.0)).rows  # the same noise for both
    slow = find_focus(Noisy(1.0), road, empty, batch=7, slower=Noisy(0.5))
    assert slow.rows == list(range(40)) and (slow.slower, slow.lag) == ("noisy", 2.0)
    # 4 s at 4 to 5 m/s are 16 to 20 m, of which a tenth is missing
    part = find_focus(Noisy(1.0), road, replace(empty, lag=1.75), batch=7, slower=Noisy(0.9)).rows
    assert 0 < len(part) < 40


def test_states_to_mend_may_be_listed_more_often_than_those_of_waiting():
    often = FocusSearch(samples=40, within=4.0, margin=0.3, own=True, lag=2.0, repeat=3)
    found = find_focus(Straight(), Road(), often, batch=7, slower=Noisy(0.5))
    meets, waits = list(range(0, 40, 2)), list(range(1, 40, 2))  # odd rows are empty
    assert found.rows == sorted(3 * meets + waits)
    once = find_focus(Straight(), Road(), replace(often, repeat=1), batch=7, slower=Noisy(0.5))
    assert once.rows == list(range(40)) and not found.others()


def test_several_folders_count_as_one(tmp_path):
    found = find_focus(Straight(), Mixture([Road(), Road()]), FocusSearch(samples=80, seed=3))
    assert found.rows == list(range(0, 80, 2)) and found.of == 80
    found.save(tmp_path / "both.json")
    for name, rows in (("a", [1, 2]), ("b", [3])):
        replace(found, rows=rows, of=40).save(tmp_path / f"{name}.json")
    both, a, b = (tmp_path / f"{name}.json" for name in ("both", "a", "b"))
    pair = Mixture([Road(), Road()])
    assert focus_rows([], pair) == [] and focus_rows([both], pair) == found.rows
    assert focus_rows([a, b], pair) == [1, 2, 43] and focus_rows([a], Road()) == [1, 2]
    for lists, samples, words in (
        ([a], pair, "made from 40"),
        ([a, both], pair, "made from 80"),
        ([a, b], Road(), "2 lists for 1 folders"),
    ):
        with pytest.raises(BadInput, match=words):
            focus_rows(lists, samples)


class Rows:
    """Samples that remember what was read."""

    def __init__(self, whole) -> None:
        self.whole, self.asked = whole, []

    def __len__(self) -> int:
        return 1_000

    def read(self, rows: np.ndarray):
        self.asked.append(rows)
        return self.whole


def test_half_of_a_batch_comes_from_the_list():
    from radp.model.config import ModelConfig
    from radp.model.network import build_model
    from tests.made_scenes import made_scene

    whole = made_scene(8, agents=20, lanes=40, route_lanes=12)
    rows, focus = Rows(whole), list(range(100, 112))
    config = AlignConfig(loop=LoopConfig(steps=10, batch=8), focus_share=0.5, augment=0.0)
    task = AlignTask(config, build_model(ModelConfig.preset("mini"), 0), rows, focus=focus)
    for step in range(6):
        task.batch(step, 0, 1)
    assert all(np.isin(asked, focus).sum() >= 4 for asked in rows.asked)
    assert set(focus) <= set(np.concatenate(rows.asked).tolist())  # three steps of four go once through the twelve
    again = len(rows.asked)
    task.batch(5, 0, 1)
    np.testing.assert_array_equal(rows.asked[again - 1], rows.asked[again])
