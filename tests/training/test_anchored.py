"""Alignment held by the base: nothing is learnt where no rule speaks, and what the gate lets through is the contact."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from radp.model.chain import Known
from radp.model.config import MINI, LoraSettings
from radp.model.loss import continued
from radp.model.sampler import plans_in_metres, sample_plans
from radp.model.schedule import alpha, call_times, denoising_times, sigma
from radp.model.target import TargetSpace
from radp.rules import RuleContext
from radp.rules.body import EGO_WIDTH
from radp.runs.errors import BadInput
from radp.scene.scene import EgoColumn
from radp.training.align import check_way
from radp.training.anchored import AnchoredTask, StateBatch
from radp.training.copies import as_driven, copies_of
from radp.training.own_plans import best_of, driven_copy
from radp.training.rule_terms import RuleTerms, along_the_way
from radp.training.settings import AlignConfig, AvoidConfig, LoopConfig, WeightingConfig
from tests.made_models import SAMPLED, randomised
from tests.made_scenes import made_scene
from tests.rules.hand_made import scene, straight_plan, straight_route

TINY = replace(
    MINI, hidden=24, heads=2, encoder_depth=1, decoder_depth=1, mixer_channels=16, preproj_hidden=32, noise_draws=2,
    ego_speed=True, speed_dropout=0.5, seam_s=0.5,
)  # fmt: skip
LEAD = (30.0, 0.0, 0.0, 0.0, 4.5)  # a standing car, 30 m ahead
AVOID = AvoidConfig(hold="base", rule_set="avoid", gate=True, without=("comfort", "goal"))


class Moments:
    """Samples that are all the same few scenes."""

    def __init__(self, moments) -> None:
        self.moments = moments

    def __len__(self) -> int:
        return 100

    def read(self, rows: np.ndarray):
        return self.moments[[int(row) % len(self.moments) for row in rows]]


def task_of(moments=None, *, rules: bool = True, focus=(), driven=(), layers="feed-forward", **changes) -> AnchoredTask:
    moments = made_scene(2, agents=20, lanes=40, route_lanes=12) if moments is None else moments
    config = AlignConfig(
        loop=LoopConfig(steps=2, batch=2), avoid=replace(AVOID, **changes), rules=rules, focus_share=0.5, strength=1.0,
        lora=LoraSettings(layers=layers),
    )  # fmt: skip
    return AnchoredTask(config, randomised(TINY), Moments(moments), focus=focus, driven=driven)


def loss_of(task: AnchoredTask, seed: int = 0):
    task.model.train()
    return task.loss(task.model, task.batch(0, 0, 1), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("trained", ["adapters", "decoder", "model"])
@pytest.mark.parametrize("way", ["x0", "chain", "ranked"])
def test_without_rules_the_loss_is_zero_at_the_base(way, trained):
    task = task_of(way=way, trained=trained, rules=False, focus=range(100))
    loss, parts = loss_of(task)
    loss.backward()
    assert loss.item() == pytest.approx(0.0, abs=1e-9) and parts["moved/ordinary"] == pytest.approx(0.0, abs=1e-4)
    learns = [p for p in task.model.parameters() if p.requires_grad]
    assert learns and all(p.grad is None or float(p.grad.abs().max()) < 1e-4 for p in learns)


def test_another_answer_than_the_bases_costs():
    task = task_of(rules=False, trained="decoder", gate=False)
    with torch.no_grad():
        task.base.decoder.final_layer.fc2.bias += 0.1
    loss, parts = loss_of(task)
    assert loss.item() > 1e-3 and parts["moved/ordinary"] > 0.1
    assert parts["anchor"] == pytest.approx(loss.item())


def test_the_encoder_learns_with_the_whole_model_and_with_adapters_everywhere():
    for trained, layers, learns in (
        ("decoder", "feed-forward", False),
        ("model", "feed-forward", True),
        ("adapters", "feed-forward", False),
        ("adapters", "all", True),
    ):
        task = task_of(trained=trained, layers=layers, gate=False, way="x0")
        loss_of(task)[0].backward()
        grads = [p.grad for p in task.base.encoder.parameters()]
        assert any(grad is not None and float(grad.abs().max()) > 0 for grad in grads) == learns


@pytest.mark.parametrize(("faster", "times"), [(-0.1, 4.0), (0.1, 1.0)])
def test_falling_behind_the_base_without_need_costs_more_than_getting_ahead(faster, times):
    costs = []
    for keep_up in (0.0, 3.0):
        config = AlignConfig(
            loop=LoopConfig(steps=2, batch=2),
            rules=False,
            avoid=replace(AVOID, keep_up=keep_up, gate=False, trained="decoder"),
        )
        model = randomised(TINY)
        with torch.no_grad():
            model.decoder.final_layer.fc2.bias[0::4] += 1.0  # all plans go ahead, at about 10 m/s
        task = AnchoredTask(config, model, Moments(made_scene(2, agents=20, lanes=40, route_lanes=12)))
        with torch.no_grad():
            task.base.decoder.final_layer.fc2.bias[0::4] += faster
        costs.append(loss_of(task)[0].item())
    assert costs[0] > 0 and costs[1] == pytest.approx(times * costs[0], rel=1e-5)


@pytest.mark.parametrize("way", ["x0", "chain"])
def test_where_nobody_is_near_the_gate_is_shut_and_nothing_is_learnt(way):
    alone = made_scene(2, agents=20, lanes=40, route_lanes=12)
    nobody = torch.zeros_like(alone.neighbor_agents_past)
    alone = replace(alone, neighbor_agents_past=nobody, static_objects=torch.zeros_like(alone.static_objects))
    without = ("lane", "comfort", "goal")
    loss, parts = loss_of(task_of(alone, way=way, without=without))
    assert loss.item() == pytest.approx(0.0, abs=1e-9) and parts["opened"] == 0.0
    assert loss_of(task_of(alone, way=way, without=without, gate=False))[0].item() > 0.0  # other rules do speak


@pytest.mark.parametrize("way", ["x0", "chain"])
def test_rules_reach_all_adapters_with_finite_gradients(way):
    task = task_of(way=way, gate=False, calls=2, root=True, contexts="both")
    loss, parts = loss_of(task)
    loss.backward()
    grads = [p.grad for name, p in task.model.named_parameters() if "lora_B" in name]
    assert len(grads) == 4 and all(grad is not None and bool(grad.isfinite().all()) for grad in grads)
    assert all(float(grad.abs().max()) > 0 for grad in grads) and parts["rules"] > 0


# ---- the gate, by hand


def judged(plan, agents=(LEAD,), **changes):
    terms = RuleTerms(AlignConfig(avoid=replace(AVOID, **changes)))
    contexts = terms.contexts(scene(straight_route(), agents=list(agents)), plan.shape[1])
    names = [rule.name for rule in terms.rules]
    return terms.judge(plan, contexts), names.index("collision"), names.index("lane")


def test_the_collision_term_counts_contact_and_nothing_less():
    near = (30.0, EGO_WIDTH / 2 + 1.0 + 0.4, 0.0, 0.0, 4.5)  # passed with 0.4 m: the rule asks for more
    for plan, agents, counts in (
        (straight_plan(speed=10.0), (LEAD,), True),
        (straight_plan(speed=10.0), (near,), False),
        (straight_plan(speed=5.0), (LEAD,), False),  # reached after 4.8 s
    ):
        found, collision, lane = judged(plan, agents)
        assert bool(found.counted[0, collision]) == counts == bool(found.opened)
        assert (float(found.terms[0, collision]) > 0) == counts
        assert not found.counted[0, lane]
        open_gate, *_ = judged(plan, agents, gate=False)
        assert float(open_gate.costs[0, collision]) > 0 and float(open_gate.terms[0, collision]) > 0


def test_the_lane_term_counts_corners_off_the_road():
    plan = straight_plan(speed=5.0)
    plan[0, :, 1] = 0.04 * torch.arange(1, 81)
    found, collision, lane = judged(plan, ())
    assert found.counted[0, lane] and not found.counted[0, collision] and float(found.terms[0, lane]) > 0


def test_a_sooner_contact_costs_more():
    soon, late = (judged(straight_plan(speed=8.0), ((x, 0.0, 0.0, 0.0, 4.5),))[0].costs[0, 0] for x in (16.0, 36.0))
    assert float(soon) > float(late) > 0


def test_the_second_context_sees_what_would_happen_if_all_went_on():
    moment = scene(straight_route(), agents=[LEAD])
    away = torch.zeros(1, 6, 80, 3, dtype=torch.float64)
    away[0, 0, :, 0], away[0, 0, :, 1] = 30.0, 20.0  # the car was taken away
    moment = replace(moment, neighbor_agents_future=away)
    plan = straight_plan(speed=10.0)
    for contexts, counts in (("executed", False), ("constant", True), ("both", True)):
        terms = RuleTerms(AlignConfig(avoid=replace(AVOID, contexts=contexts)))
        assert bool(terms.judge(plan, terms.contexts(moment, 80)).opened) == counts


def test_along_the_way_rules_brake_and_do_not_swerve():
    beside = (30.0, 0.6, 0.3, 0.0, 4.5)  # turned, and to the left: the rule alone would push to the right
    turn = torch.tensor(0.2)
    pulls = {}
    for along in (False, True):
        plan = straight_plan(speed=10.0).requires_grad_()
        found, collision, _ = judged(plan, (beside,), along=along)
        (pulls[along],) = torch.autograd.grad(found.terms[0, collision], plan)
        assert torch.equal(found.terms, judged(plan, (beside,))[0].terms), "the costs are the same"
    assert float(pulls[False][..., 1].abs().max()) > 1e-3 < float(pulls[True][..., 0].abs().max())
    assert not pulls[True][..., 1:].any()
    torch.testing.assert_close(pulls[True][..., 0], pulls[False][..., 0])
    heading = torch.stack((turn.cos(), turn.sin()))
    turned = torch.cat((torch.rand(1, 5, 2), heading.expand(1, 5, 2)), -1).requires_grad_()
    (pull,) = torch.autograd.grad((along_the_way(turned)[..., :2] * torch.tensor([0.0, 1.0])).sum(), turned)
    torch.testing.assert_close(pull[0, 0, :2], turn.sin() * heading)  # what of a push to the left is ahead


def test_along_the_way_some_rules_may_steer():
    plan = straight_plan(speed=5.0)
    plan[0, :, 1] = 0.04 * torch.arange(1, 81)
    plan.requires_grad_()
    found, collision, lane = judged(plan, (LEAD,), along=True, steer=("lane",), gate=False)
    assert torch.equal(found.costs, judged(plan, (LEAD,), gate=False)[0].costs)
    (steered,) = torch.autograd.grad(found.terms[0, lane], plan, retain_graph=True)
    (braked,) = torch.autograd.grad(found.terms[0, collision], plan)
    assert float(steered[..., 1].abs().max()) > 1e-3 and not braked[..., 1:].any()


# ---- ranked


def test_the_best_plan_is_the_one_that_meets_nobody_and_breaks_least():
    terms = RuleTerms(AlignConfig(avoid=AVOID))
    moment = scene(straight_route(), agents=[LEAD], speed=2.0)
    hits, tailgates, fine = straight_plan(speed=10.0), straight_plan(speed=5.5), straight_plan(speed=2.0)

    def best(*plans) -> int:
        return int(best_of(torch.cat(plans), terms.contexts(moment, 80, len(plans)), terms, len(plans)))

    assert best(hits, tailgates, fine) == 2 and best(fine, hits, tailgates) == 0
    assert best(tailgates, hits) == 0  # still better than contact within 4 s
    assert best(hits, hits) == -1  # nothing to learn from
    assert best(fine, tailgates) == -1  # nothing to mend


@pytest.mark.parametrize("times", ["random", "own"])
def test_the_ego_of_a_ranked_state_learns_its_best_plan_and_all_else_keeps_the_bases_answer(times):
    task = task_of(way="ranked", focus=[0], times=times)
    batch = StateBatch(np.array([0, 1]), task.samples.read(np.array([0, 1])))
    observed = task.reference.observe(batch.scene)
    encoding = task.own.encoding(batch.rows, observed)
    known = Known.of(task.base, observed, encoding)
    first, second = task.own.plans(batch.rows, batch.scene, encoding)
    best = replace(first, better=first.drawn[0] + 0.5)
    task.own.plans = lambda rows, scene, encoding: [best, second]
    answers = task._at_random_noise(batch, known, known, encoding, torch.Generator().manual_seed(0))
    assert answers.ranked.tolist() == [True, True, False, False]
    torch.testing.assert_close(answers.wanted[:2, 0], best.better.expand(2, -1, -1))
    torch.testing.assert_close(answers.wanted[:2, 1:], answers.base[:2, 1:])
    torch.testing.assert_close(answers.wanted[2:], answers.base[2:])


def test_the_copy_that_mends_stands_in_for_the_own_plan_of_a_ranked_state(monkeypatch):
    usual = task_of(way="ranked", focus=[0])
    batch = StateBatch(np.array([1, 0]), usual.samples.read(np.array([1, 0])))
    encoding = usual.own.encoding(batch.rows, usual.reference.observe(batch.scene))
    own = torch.stack([plan.drawn for plan in task_of(way="ranked").own.plans(batch.rows, batch.scene, encoding)])
    task = task_of(way="ranked", focus=[0], copies=True)
    monkeypatch.setattr(
        "radp.training.own_plans.least_change", lambda plan, copies, contexts, urgent: torch.tensor([3])
    )
    other, mended = task.own.plans(batch.rows, batch.scene, encoding)
    assert other.better is None
    for plan, usually in zip((other, mended), own):
        torch.testing.assert_close(plan.drawn, usually)
    wanted = copies_of(plans_in_metres(task.base, own, batch.scene)[1:, 0])[:, 3]
    space = TargetSpace(TINY, task.base.normaliser)
    learnt = mended.drawn.clone()
    learnt[0] = mended.better
    torch.testing.assert_close(space.to_metres(learnt[None])[:, 0, 1:], wanted, atol=1e-4, rtol=1e-4)
    monkeypatch.setattr(
        "radp.training.own_plans.least_change", lambda plan, copies, contexts, urgent: torch.tensor([-1])
    )
    plans = task_of(way="ranked", focus=[0], copies=True).own.plans(batch.rows, batch.scene, encoding)
    assert all(plan.better is None and torch.equal(plan.drawn, usually) for plan, usually in zip(plans, own))


def test_a_state_of_a_better_drive_learns_to_go_as_it_did():
    moments = made_scene(2, agents=20, lanes=40, route_lanes=12)
    usual = task_of(moments, way="ranked", focus=[0])
    batch = StateBatch(np.array([1, 0]), usual.samples.read(np.array([1, 0])))
    encoding = usual.own.encoding(batch.rows, usual.reference.observe(batch.scene))
    other, learns = task_of(moments, way="ranked", focus=[0], copies=True, driven=[0]).own.plans(
        batch.rows, batch.scene, encoding
    )
    assert other.better is None and learns.better is not None
    space = TargetSpace(TINY, usual.base.normaliser)
    learnt = learns.drawn.clone()
    learnt[0] = learns.better
    future, known = continued(batch.scene.ego_agent_future[1:])
    own = plans_in_metres(usual.base, learns.drawn[None], batch.scene[[1]])[:, 0]
    wanted = as_driven(own, future, known)
    torch.testing.assert_close(space.to_metres(learnt[None])[:, 0, 1:], wanted, atol=1e-4, rtol=1e-4)
    assert float((wanted - own).norm(dim=-1).max()) > 1.0
    with pytest.raises(BadInput, match="no futures"):
        driven_copy(straight_plan(), replace(batch.scene[[0]], ego_agent_future=None))


def test_own_noise_is_what_the_planner_meets_and_copies_start_between_the_own_plan_and_themselves():
    task = task_of(way="ranked", focus=[0, 1], times="own", draws=3)
    batch = StateBatch(np.array([0, 1]), task.samples.read(np.array([0, 1])))
    observed = task.reference.observe(batch.scene)
    encoding = task.own.encoding(batch.rows, observed)
    plans = [replace(plan, better=plan.drawn[0] + 100.0) for plan in task.own.plans(batch.rows, batch.scene, encoding)]
    task.own.plans = lambda rows, scene, encoding: plans
    seen = []
    known = Known.of(task.base, observed, encoding)
    reference = SimpleNamespace(answer=lambda x, time: seen.append(x) or known.answer(x, time))
    answers = task._at_random_noise(batch, known, reference, encoding, torch.Generator().manual_seed(0))
    calls = call_times(denoising_times(TINY.sampler_steps))
    assert all(bool((calls == time).any()) for time in answers.times) and len(answers.times.unique()) > 2
    for k, time in enumerate(answers.times):
        drawn, scale = plans[k // 3].drawn, alpha(time)
        start = ((seen[0][k, 0, 1:] / scale - drawn[0, 1:]).mean() / 100.0).item()
        noise = (seen[0][k, 1:, 1:] - scale * drawn[1:, 1:]).std() / sigma(time)
        assert float(scale) < 0.01 or -0.05 < start < 1.05
        assert float(noise) == pytest.approx(0.5, abs=0.05)


# ---- own chain and memory


def test_the_own_chain_is_the_planners_and_only_its_last_calls_learn():
    model, moments = randomised(TINY), made_scene(2, agents=20, lanes=40, route_lanes=12)
    noise = torch.randn(2, 2, TINY.predicted, TINY.horizon, 4, generator=torch.Generator().manual_seed(1))
    observed = model.observe(moments)
    known, trace = Known.of(model, observed, model.encoder(observed)), []
    drawn = plans_in_metres(model, known.draw(noise, 2, trace), moments)
    wanted = sample_plans(model, moments, noise=noise).trajectories.flatten(0, 1)
    torch.testing.assert_close(drawn.detach(), wanted, **SAMPLED)
    assert [answer.requires_grad for _, _, answer in trace] == [False] * 9 + [True] * 2


def test_states_are_encoded_once_and_the_oldest_are_forgotten(monkeypatch):
    task = task_of(kept_states=3)
    asked, encoder = [], task.reference.encoder.forward
    monkeypatch.setattr(task.reference.encoder, "forward", lambda seen: asked.append(len(seen)) or encoder(seen))
    for rows in ([0, 1], [1, 0], [0, 2], [3, 3], [0, 3]):
        rows = np.array(rows)
        observed = task.reference.observe(task.samples.read(rows))
        kept = task.own.encoding(rows, observed)
        torch.testing.assert_close(kept.tokens, encoder(observed).tokens, atol=1e-4, rtol=1e-4)
    assert asked == [2, 1, 2, 1]


def test_ways_that_contradict_each_other_are_refused():
    for avoid, words in (
        (AvoidConfig(way="chain"), "needs --hold base"),
        (replace(AVOID, plans=1), "plans is 1"),
        (replace(AVOID, copies=True), "--copies needs --way ranked"),
        (replace(AVOID, calls=0), "calls is 0"),
        (replace(AVOID, calls=11), "calls is 11"),
    ):
        with pytest.raises(BadInput, match=words):
            check_way(AlignConfig(avoid=avoid), steps=10)
    for weighting in (WeightingConfig(conditioned=True), WeightingConfig(tiers=True)):
        check_way(AlignConfig(weighting=weighting))
        check_way(AlignConfig(avoid=AVOID, weighting=weighting))
        with pytest.raises(BadInput, match="--way ranked has none"):
            check_way(AlignConfig(avoid=replace(AVOID, way="ranked"), weighting=weighting))
    around = WeightingConfig(conditioned=True, around_default=True)
    check_way(AlignConfig(avoid=AVOID, weighting=around))
    for changes in ({"weighting": around}, {"avoid": AVOID, "weighting": replace(around, conditioned=False)}):
        with pytest.raises(BadInput, match="--around-default needs"):
            check_way(AlignConfig(**changes))
    for sound in (AvoidConfig(), AVOID, replace(AVOID, plans=2, calls=1), replace(AVOID, calls=10)):
        check_way(AlignConfig(avoid=sound))
    with pytest.raises(BadInput, match="calls is 6, expected from 1 to 5"):
        check_way(AlignConfig(avoid=replace(AVOID, calls=6)), steps=5)
    with pytest.raises(BadInput, match="no rule 'wings'"):
        RuleTerms(AlignConfig(avoid=replace(AVOID, without=("wings",))))
    with pytest.raises(BadInput, match="no rule 'sails' to steer"):
        RuleTerms(AlignConfig(avoid=replace(AVOID, steer=("sails",))))


def test_the_gate_opens_for_what_is_urgent_alone():
    moments = [scene(straight_route(), agents=[LEAD], speed=speed) for speed in (10.0, 2.0)]
    plan = straight_plan(speed=10.0)
    for urgent, wanted in ((False, [True, True]), (True, [True, False])):
        terms = RuleTerms(AlignConfig(avoid=replace(AVOID, urgent=urgent)))
        assert [bool(terms.opens(plan, RuleContext.from_scene(one))[0, 0]) for one in moments] == wanted


def test_some_states_are_met_by_an_ego_that_stands_or_is_slower():
    task = task_of(slowed=0.5, focus=[3])
    task.config = replace(task.config, loop=replace(task.config.loop, batch=20), focus_share=0.1)
    batch = task.batch(0, 0, 1)
    real, other = batch.rows < 100, batch.rows >= 100
    assert other.sum() == 10 and 103 not in batch.rows and 3 in batch.rows
    speed = batch.scene.ego_current_state[:, EgoColumn.VX : EgoColumn.VY + 1].norm(dim=-1)
    usual = task.samples.read(batch.rows % 100).ego_current_state[:, EgoColumn.VX : EgoColumn.VY + 1].norm(dim=-1)
    assert torch.equal(speed[real], usual[real]) and (speed[other] < usual[other]).all()
    assert (speed[other] == 0).any() and (speed[other] > 0).any()
    again = task.batch(0, 0, 1)
    assert torch.equal(again.scene.ego_current_state, batch.scene.ego_current_state)
    loss, _ = loss_of(task_of(slowed=0.5, rules=False, way="ranked"))
    assert loss.item() < 1e-9


def test_adapters_to_go_on_from_are_held_to_the_base_itself(tmp_path):
    """At a start that is not the base, the anchor pulls it back; a start that is the base has none."""
    from radp.model.adapters import save_adapters

    task = task_of(rules=False)
    save_adapters(task.model, tmp_path / "base")
    with torch.no_grad():
        for name, value in task.model.named_parameters():
            if "lora_B" in name:
                value.fill_(0.05)
    save_adapters(task.model, tmp_path / "moved")
    found = {}
    for name in ("base", "moved"):
        config = replace(task.config, start=str(tmp_path / name))
        again = AnchoredTask(config, randomised(TINY), task.samples)
        found[name] = loss_of(again)[0].item()
    assert found["base"] < 1e-10 < 1e-6 < found["moved"]
    with pytest.raises(BadInput, match="--start names adapters"):
        check_way(replace(task.config, start="radp-mini", avoid=replace(AVOID, trained="decoder")))
