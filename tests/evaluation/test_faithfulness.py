"""Faithfulness: a made planner whose truth is known, removals checked by hand, every family on a small model."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch

from radp.evaluation import explanations
from radp.evaluation.explanations import FAMILIES, Question, attention_rollout, lowest_ttc, nearest, pressure_shares
from radp.evaluation.faithfulness import STATISTICS, RemovalTrial, _summary, ask
from radp.evaluation.replanning import Replanner, distance
from radp.model.sampler import sample_plans
from radp.planners.diffusion import scene_config
from radp.report.faithfulness_table import faithfulness_json, faithfulness_table
from radp.rules import rule_set
from radp.scenario import PACIFICA
from radp.scene.builder import build_scenes
from radp.scene.scene import AgentColumn
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from tests.made_models import SMALL, randomised

FEW = replace(SMALL, agents=8, neighbours=5, lanes=8, route_lanes=4)
WEIGHTS = torch.tensor([0.5, 3.0, 0.0, 1.0])


class MadeMoment:
    """A planner that every road user pushes ahead by its own weight: all truths can be worked out by hand."""

    def __init__(self) -> None:
        nobody = torch.zeros(1, 4, dtype=torch.bool)
        self.plan, self.alone = self.without(nobody)[0], self.without(~nobody)[0]

    def __len__(self) -> int:
        return 4

    def without(self, gone: torch.Tensor) -> torch.Tensor:
        plans = torch.zeros(len(gone), 80, 4)
        plans[..., 0] = ((~gone).float() @ WEIGHTS)[:, None]
        return plans


@pytest.fixture(scope="module")
def question() -> Question:
    observation = observe_logs([make_scenario(3, agents=6, turn="straight")], 5)
    model = randomised(FEW)
    scene = build_scenes(observation, scene_config(FEW, rules=True))
    return Question(Replanner(model, scene, seed=4, most=4), scene, rule_set("paper"))


def test_the_truth_itself_scores_best():
    trial = RemovalTrial.of(MadeMoment(), seed=0)
    np.testing.assert_allclose(trial.truth, WEIGHTS, atol=1e-3)
    assert trial.whole == pytest.approx(4.5, abs=1e-3)
    best, worst = trial.judge(WEIGHTS.numpy()), trial.judge(-WEIGHTS.numpy())
    assert best["rho"] == pytest.approx(1.0) and best["top1"] == 1.0 and best["infidelity"] < 1e-4
    assert worst["rho"] == pytest.approx(-1.0) and worst["top1"] == 0.0 and worst["infidelity"] > 1.0
    assert best["deletion"] == pytest.approx((3.0 + 4.0 + 4.5) / 3 / 4.5, abs=1e-3)
    assert best["insertion"] == pytest.approx((3.0 + 4.0 + 4.5) / 3 / 4.5, abs=1e-3)
    orders = [trial.judge(np.array(order, float)) for order in permutations(range(4))]
    for name in ("deletion", "insertion"):
        assert max(one[name] for one in orders) == pytest.approx(best[name], abs=1e-3)
        assert min(one[name] for one in orders) == pytest.approx(worst[name], abs=1e-3)


def test_saying_nothing_is_no_correlation_and_a_guess():
    found = RemovalTrial.of(MadeMoment(), seed=0).judge(np.zeros(4))
    assert found["rho"] == 0.0 and found["top1"] == 0.25 and found["infidelity"] == 1.0


def test_infidelity_does_not_depend_on_the_scale():
    trial, draw = RemovalTrial.of(MadeMoment(), seed=1), np.random.default_rng(0)
    scores = draw.random(4)
    assert trial.infidelity(scores) == pytest.approx(trial.infidelity(17.0 * scores))
    assert trial.infidelity(WEIGHTS.numpy() + 0.1 * scores) < 0.2


def test_removing_is_a_row_of_zeros_with_the_same_noise(question):
    moment = question.moment
    plain = sample_plans(moment.model, moment.scene, noise=moment.noise).trajectories[0, 0, 0]
    torch.testing.assert_close(moment.plan, plain, atol=1e-4, rtol=1e-4)
    gone = torch.zeros(2, len(moment), dtype=torch.bool)
    gone[0, 1] = gone[1, 0] = gone[1, 2] = True
    past = moment.scene.neighbor_agents_past.clone()
    past[:, moment.rows[1]] = 0.0
    by_hand = sample_plans(moment.model, replace(moment.scene, neighbor_agents_past=past), noise=moment.noise)
    found = moment.without(gone)
    torch.testing.assert_close(found[0], by_hand.trajectories[0, 0, 0], atol=1e-4, rtol=1e-4)
    assert distance(found, moment.plan).min() > 1e-3


def test_occlusion_and_influence_agree(question):
    pytest.importorskip("captum")
    moment, found = question.moment, explanations.occlusion(question)
    with torch.no_grad():
        whole = moment.influence(moment.past)[0]
    torch.testing.assert_close(whole, distance(moment.plan, moment.alone), atol=1e-4, rtol=1e-4)
    left = distance(moment.without(torch.eye(len(moment), dtype=torch.bool)), moment.alone)
    torch.testing.assert_close(found, (whole - left).abs(), atol=1e-3, rtol=1e-3)


def test_every_family_gives_one_score_a_road_user_and_repeats_itself(question):
    pytest.importorskip("captum")
    numpy_state = np.random.get_state()[1].copy()  # noqa: NPY002
    for name, explain in FAMILIES.items():
        first, again = explain(question), explain(question)
        assert first.shape == (len(question.moment),) and torch.isfinite(first).all(), name
        torch.testing.assert_close(first, again, atol=1e-4, rtol=1e-3)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


def test_attention_is_shared_out(question):
    with explanations._attention_of(question.moment.model) as seen:
        sample_plans(question.moment.model, question.moment.scene, noise=question.moment.noise)
    assert len(seen) == FEW.encoder_depth + 2 * FEW.decoder_depth
    for weights in seen.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[0]))
    assert not any(module._forward_pre_hooks for module in seen)
    found = attention_rollout(question)
    assert (found >= 0).all() and found.sum() <= 1


def test_nearest_and_ttc_by_hand(question):
    moment = question.moment
    past = torch.zeros(1, 4, 21, 11)
    past[..., AgentColumn.COS], past[..., AgentColumn.WIDTH], past[..., AgentColumn.LENGTH] = 1.0, 2.0, 4.0
    past[0, :, -1, :2] = torch.tensor([[20.0, 0.0], [20.0, 8.0], [-15.0, 0.0], [40.0, 0.0]])
    ego = moment.scene.ego_current_state.clone()
    ego[:, 4] = 10.0
    made = object.__new__(Replanner)
    made.__dict__.update(moment.__dict__, past=past, scene=replace(moment.scene, ego_current_state=ego))
    asked = replace(question, moment=made)
    gaps = [x - PACIFICA.rear_axle_to_center - PACIFICA.length / 2 - 2.0 for x in (20.0, 40.0)]
    found = lowest_ttc(asked)
    for i, gap in zip((0, 3), gaps):
        assert 1 / float(found[i]) == pytest.approx(np.ceil(gap) / 10.0, abs=0.1)  # in steps of 0.1 s at 10 m/s
    assert found[1] == found[2] == 0.0
    assert nearest(asked).argmax() == 2


def test_shares_go_to_the_road_users_by_their_tracks(question, monkeypatch):
    tracks = question.scene.agent_tracks[0, question.moment.rows]

    class Why:
        agent_share = torch.tensor([[0.1, 0.9]])
        tracks_ = torch.stack((tracks[2], tracks[0]))[None]

    Why.tracks = Why.tracks_
    monkeypatch.setattr(explanations, "attribute", lambda *a, **k: Why)
    found = pressure_shares(question)
    assert found.tolist() == pytest.approx([0.9, 0.0, 0.1, 0.0][: len(found)])


def test_random_weights_keep_their_values_and_lose_their_meaning(question):
    model = question.moment.model
    other = explanations.randomised(model)
    for (name, a), (_, b) in zip(model.state_dict().items(), other.state_dict().items()):
        torch.testing.assert_close(a.flatten().sort().values, b.flatten().sort().values, msg=name)
    moment = Replanner(other, question.scene, 4, 4)
    assert distance(moment.plan, question.moment.plan) > 1e-3


def test_a_moment_on_an_empty_road_has_a_plan(question):
    alone = replace(question.scene, neighbor_agents_past=torch.zeros_like(question.scene.neighbor_agents_past))
    moment = Replanner(question.moment.model, alone, 4, 4)
    assert len(moment) == 0 and torch.equal(moment.plan, moment.alone)
    assert len(moment.without(torch.zeros(2, 0, dtype=torch.bool))) == 2


def test_a_moment_is_asked_and_the_table_has_every_family(question):
    pytest.importorskip("captum")
    one = ask(question, explanations.randomised(question.moment.model))
    assert set(one.figures) == set(FAMILIES) and set(one.figures["nearest"]) == set(STATISTICS)
    assert one.same["nearest"] == pytest.approx(1.0) and one.seconds["integrated gradients"] > 0
    found = _summary("small", [one, one], ["a", "b"], 0, 50)
    table = faithfulness_table(found, "here")
    assert [row[0] for row in table.rows[:-1]] == list(FAMILIES)
    assert all(len(row) == len(table.header) for row in table.rows)
    assert set(faithfulness_json(found)["families"]) == set(FAMILIES)
