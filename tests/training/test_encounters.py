"""Encounters: who is moved keeps to its way, has the past that fits, and would be met by the way that was driven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.geometry.frames import heading_angle
from radp.rules import RuleContext
from radp.rules.contact import MARGIN, first_contact, time_to_stop
from radp.runs.errors import BadInput
from radp.scene.scene import AGENT_VELOCITY, COS_SIN, OBJECT_VELOCITY, XY, AgentColumn, RuleView, Scene
from radp.training.align import check_way
from radp.training.data import Mixture
from radp.training.encounters import APART, Encounters
from radp.training.focus import Focus, find_focus, focus_rows
from radp.training.settings import AlignConfig, AvoidConfig, FocusSearch
from tests.rules.hand_made import scene, straight_plan, straight_route
from tests.training.test_focus import Straight

BESIDE = (20.0, 3.5, 0.0, 8.0, 4.5)  # a car in the lane to the left, which is never met
CROSSING = (25.0, -25.0, np.pi / 2, 3.0, 4.5)  # comes from the right, much too late
LEAD = (45.0, 0.0, 0.0, 12.0, 4.5)  # ahead, and faster


class Drives:
    """40 samples of one drive at 10 m/s along x, with these others."""

    def __init__(self, *agents) -> None:
        plan = straight_plan(10.0)
        future = torch.cat((plan[..., XY], heading_angle(plan[..., COS_SIN]).unsqueeze(-1)), -1)
        made = scene(straight_route(), agents=list(agents))
        tracks = torch.tensor([[*range(len(agents)), *[-1] * (made.neighbor_agents_past.shape[1] - len(agents))]])
        self.moment = replace(made, ego_agent_future=future, agent_tracks=tracks)

    def __len__(self) -> int:
        return 40

    def read(self, rows) -> Scene:
        return self.moment[[0] * len(rows)]


def meets(found: Scene) -> torch.Tensor:
    """(B,) whether the way driven comes within 0.3 m of somebody who goes straight on, soon enough."""
    context = RuleContext.from_scene(found)
    return first_contact(straight_plan(10.0).expand(len(found), -1, -1), context, MARGIN) <= time_to_stop(context)


def test_somebody_who_crosses_or_leads_is_met():
    for agents in ([CROSSING], [LEAD], [BESIDE, CROSSING]):
        drives = Drives(*agents)
        found = Encounters(drives, variants=2).read(np.arange(80))
        assert not meets(drives.read(range(1))).any()
        assert meets(found).float().mean() > 0.9


def test_who_is_moved_keeps_to_its_way_and_has_the_past_that_fits():
    drives = Drives(CROSSING, BESIDE)
    found = Encounters(drives, variants=1).read(np.arange(40))
    past, view = found.neighbor_agents_past, RuleView.of(found)
    crossing = found.agent_tracks.eq(0).long().argmax(1)
    own = past[torch.arange(40), crossing]
    assert torch.allclose(own[..., AgentColumn.X], torch.tensor(25.0, dtype=own.dtype))  # its lane lies along y
    assert torch.allclose(own[..., COS_SIN], drives.moment.neighbor_agents_past[:, 0, :, COS_SIN])
    step = torch.diff(own[..., XY], dim=1)
    assert torch.allclose(step, 0.1 * own[:, 1:, AGENT_VELOCITY], atol=1e-9)
    speeds = own[:, -1, AgentColumn.VY]
    assert 0.2 < (speeds - 3.0).abs().lt(1e-9).float().mean() < 0.9 and speeds.min() >= 0 and speeds.max() <= 4.5
    # the rules see the same, and nobody else has changed
    row = torch.arange(40), crossing
    assert torch.equal(view.objects[row][:, XY], own[:, -1, XY])
    assert torch.equal(view.objects[row][:, OBJECT_VELOCITY], own[:, -1, AGENT_VELOCITY])
    beside = past[torch.arange(40), found.agent_tracks.eq(1).long().argmax(1)]
    moved = (beside != drives.moment.neighbor_agents_past[:, 1]).flatten(1).any(1)
    changed = (own != drives.moment.neighbor_agents_past[:, 0]).flatten(1).any(1)
    assert (moved.long() + changed.long() <= 1).all() and changed.float().mean() > 0.9
    # nearest first, as in any scene
    there = past[:, :2, -1, XY].norm(dim=-1)
    assert (there[:, 0] <= there[:, 1]).all() and (found.agent_tracks[:, 2:] == -1).all()


def test_nobody_is_put_into_somebody_else_and_nobody_knows_what_comes():
    drives = Drives((12.0, 0.0, 0.0, 10.0, 4.5), (30.0, 0.0, 0.0, 10.0, 4.5))
    drives.moment = replace(drives.moment, neighbor_agents_future=torch.ones(1, 2, 80, 3, dtype=torch.float64))
    found = Encounters(drives, variants=3).read(np.arange(120))
    near = found.neighbor_agents_past[:, :2, -1, AgentColumn.X].sort(1).values
    assert (torch.diff(near, dim=1) >= 4.5 + APART - 1e-9).all() or (near[:, 0] < 0).any()
    assert not found.neighbor_agents_future.any()


def test_rules_with_a_view_of_their_own_see_the_same():
    drives = Drives(CROSSING, BESIDE)
    view = replace(RuleView.of(drives.moment), object_tracks=torch.tensor([[1, 0, *[-1] * 9]]))
    view = replace(view, objects=view.objects[:, [1, 0, *range(2, 11)]])  # in another order
    drives.moment = replace(drives.moment, rules=view)
    found = Encounters(drives, variants=1).read(np.arange(40))
    assert found.rules is not None and found.rules.road_users == view.road_users
    for track in (0, 1):
        seen = found.neighbor_agents_past[torch.arange(40), found.agent_tracks.eq(track).long().argmax(1), -1]
        row = found.rules.objects[:, 1 - track]
        assert torch.equal(row[:, XY], seen[:, XY])
        assert torch.allclose(row[:, OBJECT_VELOCITY], seen[:, AGENT_VELOCITY], rtol=1e-12)
    assert (found.rules.objects[:, 2:] == view.objects[:, 2:]).all()


def test_a_place_is_always_the_same_scene_and_variants_differ():
    encounters = Encounters(Drives(CROSSING, LEAD), variants=3)
    assert len(encounters) == 120
    first, alone = encounters.read([7, 47, 87]), encounters.read([47])
    assert torch.equal(first.neighbor_agents_past[1:2], alone.neighbor_agents_past)
    assert len({tuple(x.flatten().tolist()) for x in first.neighbor_agents_past[:, :2, -1, XY]}) == 3


def test_where_nobody_is_there_nothing_changes():
    drives = Drives()
    found = Encounters(drives, variants=1).read([0, 1])
    assert torch.equal(found.neighbor_agents_past, drives.read([0, 1]).neighbor_agents_past)
    assert not RuleView.of(found).objects.any()


def test_encounters_are_searched_and_learnt_behind_their_samples(tmp_path):
    drives = Drives(CROSSING)
    wanted = FocusSearch(samples=120, within=4, margin=0.3, own=True, contexts="constant", mendable=True, encounters=2)
    listed = find_focus(Straight(), Encounters(drives, 2), wanted)
    assert len(listed.rows) > 40 and listed.encounters == 2
    listed.save(tmp_path / "moved.json")
    Focus([1], 40, 40, "straight", 4.0, 0).save(tmp_path / "real.json")
    rows = focus_rows([tmp_path / "real.json", tmp_path / "moved.json"], Mixture([drives, Encounters(drives, 2)]))
    assert rows == [1, *(40 + row for row in listed.rows)]
    with pytest.raises(BadInput, match="made from 80 samples, this folder has 40"):
        focus_rows([tmp_path / "moved.json"], drives)


def test_what_would_have_happened_is_not_known():
    held = AvoidConfig(hold="base", encounters=1)
    with pytest.raises(BadInput, match="--encounters needs --hold base and --contexts constant"):
        check_way(AlignConfig(avoid=held))
    check_way(AlignConfig(avoid=replace(held, contexts="constant")))
