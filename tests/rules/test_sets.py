"""Rule sets: the paper's rules stay as they are, those made for attribution against cases worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from radp.attribution import Calibration, attribute
from radp.attribution.online import levels_of
from radp.attribution.teacher import part_pressure
from radp.rules import RuleContext, default_rules, register_rule_set, rule_costs, rule_set, rule_sets, rules_named, sets
from radp.rules.body import body_corners
from radp.rules.collision import Collision
from radp.rules.lane import BodyLane
from radp.rules.penalty import penalty
from radp.runs.errors import BadInput
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route
from tests.rules.test_costs import phi

HALF_WIDTH, FRONT, REAR = 2.297 / 2, 4.049, 1.127


def pressed() -> tuple[torch.Tensor, RuleContext]:
    """A winding plan near the border, with somebody ahead and somebody beside it."""
    agents = [(14.0, 0.5, 0.1, 2.0, 4.5), (35.0, -1.0, 0.0, 6.0, 8.0)]
    context = RuleContext.from_scene(scene(straight_route(lanes=2), agents=agents, speed=8.0, limit=8.0))
    plan = curved_plan(8.3, 0.004)
    plan[0, :, 1] += 0.3 * torch.sin(torch.arange(80, dtype=torch.float64))
    return plan, context


def test_sets_share_their_channels_and_the_papers_stays():
    assert rule_set("paper") == default_rules()
    for name in rule_sets():
        assert [rule.name for rule in rule_set(name)][:6] == [rule.name for rule in default_rules()]
    collision, lane, *rest = rule_set("v2")[:6]
    assert collision == Collision(from_now=4.0) and lane == BodyLane(margin=0.3)
    assert rest == list(default_rules()[2:])
    assert collision.constants == {"from_now": 4.0} and Collision().constants == {} == default_rules()[5].constants
    assert rules_named(["lane"], "v2") == (BodyLane(),)
    with pytest.raises(BadInput, match="no rule set 'v9'; expected one of paper, v2"):
        rule_set("v9")


def test_a_set_of_ones_own(monkeypatch):
    monkeypatch.setattr(sets, "_SETS", dict(sets._SETS))
    register_rule_set("strict", [BodyLane(margin=0.6)])
    assert rule_set("strict")[1].constants == {"margin": 0.6} and rule_set("strict")[0] == Collision()
    with pytest.raises(ValueError, match="registered already"):
        register_rule_set("v2", [])


def test_body_corners_by_hand():
    plan = torch.tensor([[[3.0, 1.0, 0.0, 2.0]]], dtype=torch.float64)  # heading +y, not of unit length
    expected = [[3 - HALF_WIDTH, 1 + FRONT], [3 + HALF_WIDTH, 1 + FRONT], [3 + HALF_WIDTH, 1 - REAR],
                [3 - HALF_WIDTH, 1 - REAR]]  # fmt: skip
    torch.testing.assert_close(body_corners(plan)[0, 0], torch.tensor(expected, dtype=torch.float64))


def test_body_lane_by_hand():
    context, rule = RuleContext.from_scene(scene(straight_route())), [BodyLane()]
    for y in (0.0, 0.45, -0.8):
        expected = phi(abs(y) + HALF_WIDTH - 1.75 + 0.3, 0.5)
        assert float(rule_costs(straight_plan(y=y), context, rule)[0, 0]) == pytest.approx(expected, rel=1e-9)
        over = rule[0].violation(straight_plan(y=y), context)
        torch.testing.assert_close(over, torch.full_like(over, abs(y) + HALF_WIDTH - 1.75))


def test_a_turned_body_reaches_further_than_its_axle():
    """On the centre line, but turned by 0.2 rad: the left front corner is the outermost."""
    context, plan = RuleContext.from_scene(scene(straight_route())), straight_plan()
    plan[..., 2], plan[..., 3] = math.cos(0.2), math.sin(0.2)
    reach = FRONT * math.sin(0.2) + HALF_WIDTH * math.cos(0.2)
    over = BodyLane().violation(plan, context)
    torch.testing.assert_close(over, torch.full_like(over, reach - 1.75))
    assert BodyLane().violated(plan, context) and not default_rules()[1].violated(plan, context)


def test_body_lane_knows_lanes_side_by_side_and_no_centre_line():
    context = RuleContext.from_scene(scene(straight_route(lanes=2)))
    between = rule_costs(straight_plan(y=1.75), context, [BodyLane(), *default_rules()[1:2]])[0]
    assert float(between[0]) < 1e-6 < 1e-2 < float(between[1])  # the paper's rule wants a centre line


def test_gate_counts_from_now():
    """A standing car ahead: hits after 4 s and more matter to the paper's gate, not to that of 4 s from now."""
    context = RuleContext.from_scene(scene(straight_route(), agents=[(60.0, 0.0, 0.0, 0.0, 4.5)]))
    plan = straight_plan(speed=9.0)
    paper = Collision().pairs(plan, context)
    times, ttc = 0.1 * (paper.step + 1).double(), paper.separation.clamp(min=0) / paper.closing.clamp(min=1e-3)
    near = torch.sigmoid((0.5 - paper.separation) / 0.25)
    meets, short = torch.sigmoid((0.5 - paper.miss) / 0.25), torch.sigmoid(paper.violation / 0.25)
    closes = 1 - torch.exp(-paper.closing)
    for limit in (4.0, 2.0):
        soon = torch.sigmoid((limit - times - ttc) / 0.5) * closes
        gate = torch.maximum(near * torch.sigmoid((limit - times) / 0.5), soon * meets) * short
        gate = gate * (paper.separation <= 20)
        expected = torch.where(gate < 0.01, 0.0, gate)
        torch.testing.assert_close(Collision(from_now=limit).gate(paper), expected)
    late = times > 6.5
    assert (Collision(from_now=4.0).gate(paper)[late] == 0).all() and (Collision().gate(paper)[late] > 0.9).any()


def test_discounted_gate_fades_along_the_plan():
    plan, context = pressed()
    pairs = Collision().pairs(plan, context)
    plain, faded = Collision().gate(pairs), Collision(discount=1.0).gate(pairs)
    expected = plain * torch.exp(-0.1 * (pairs.step + 1).double())
    kept = expected >= 0.01
    torch.testing.assert_close(faded[kept], expected[kept])
    assert kept.any() and (faded[~kept] == 0).all()


@pytest.mark.parametrize("name", [name for name in rule_sets() if name != "paper"])
def test_gradient_of_what_is_new_in_float64(name):
    plan, context = pressed()
    collision, lane = rule_set(name)[:2]
    context = context.bind(plan, corners=True)
    weights = collision.weights(collision.pairs(plan, context))
    assert float(weights.sum()) > 0

    def cost(x):  # gate and weights are held fixed by definition, so hold them fixed here as well
        hits = (weights * penalty(collision.pairs(x, context).violation, collision.scale)).sum()
        return hits + (lane.cost(x, context).sum() if name == "v2" else 0.0)

    assert torch.autograd.gradcheck(cost, (plan.requires_grad_(),), eps=1e-6, atol=1e-6, rtol=1e-4, fast_mode=True)


@pytest.mark.parametrize("name", rule_sets())
def test_shares_are_exact(name):
    plan, context = pressed()
    why = attribute(plan, context, rules=rule_set(name))
    assert (why.pressure > 0)[0, [0, 1]].all()
    torch.testing.assert_close(why.agent_share.sum(-1), torch.ones(1, dtype=torch.float64))
    felt = why.gradient_norm > 0
    torch.testing.assert_close(why.step_share.sum(-1)[felt], torch.ones(int(felt.sum()), dtype=torch.float64))
    torch.testing.assert_close(why.per_step.square().mean(-1), why.gradient_norm.square())
    collision = rule_set(name)[0]
    bound = context.bind(plan)
    terms = collision.agent_terms(plan, bound)
    torch.testing.assert_close(terms.sum((1, 2)), why.cost[:, 0])
    torch.testing.assert_close(terms.sum(1), collision.agent_costs(plan, bound))


def test_seam_and_plan_are_kept_apart():
    """A plan that begins too fast presses in its first steps, one that brakes hard later does not."""
    context = RuleContext.from_scene(scene(straight_route(), speed=8.0))
    jump, brake = straight_plan(speed=10.0), straight_plan(speed=8.0)
    brake[0, 40:, 0] = brake[0, 40, 0]  # stands at once
    kinematics = attribute(torch.cat((jump, brake)), context.repeat_interleave(2), rules=default_rules()[3:4])
    assert kinematics.seam_share[:, 0].tolist() == pytest.approx([1.0, 0.0], abs=1e-6)
    seam = part_pressure(kinematics.pressure, kinematics.seam_share)
    rest = part_pressure(kinematics.pressure, 1 - kinematics.seam_share)
    parts = seam.expm1().square() + rest.expm1().square()
    torch.testing.assert_close(parts, kinematics.pressure.expm1().square())


@pytest.mark.parametrize("name", rule_sets())
def test_degenerate_scenes_are_finite(name):
    for given in (
        scene(),
        scene(speed=0.0),
        scene(straight_route(pieces=1, length=0.0), speed=0.0, limit=None),
        scene(straight_route(), speed=0.0, agents=[(0.0, 0.0, 0.0, 0.0, 4.5)]),
    ):
        for plan in (torch.zeros(1, 80, 4, dtype=torch.float64), straight_plan(speed=0.0)):
            why = attribute(plan, RuleContext.from_scene(given), rules=rule_set(name))
            for values in (why.cost, why.direction, why.pressure, why.step_share, why.agent_share):
                assert torch.isfinite(values).all()


def test_expert_target_is_the_experts_end_point():
    given = scene(straight_route(pieces=5), speed=10.0)
    future = torch.zeros(1, 80, 3, dtype=torch.float64)
    future[0, :50, 0] = 0.6 * torch.arange(1, 51)  # the log ends after 5 s, 30 m ahead
    given = type(given)(**{**vars(given), "ego_agent_future": future})
    assert float(RuleContext.from_scene(given).target) == pytest.approx(96.0)
    assert float(RuleContext.from_scene(given, expert_target=True).target) == pytest.approx(30.0)
    future[0, 1:] = 0.0  # it ends after its first step
    assert float(RuleContext.from_scene(given, expert_target=True).target) == pytest.approx(0.6)


@pytest.mark.parametrize("name", ["v2", "road-v2"])
def test_every_rule_for_attribution_has_a_packaged_level(name):
    levels = levels_of("idm", name)  # which has none of its own
    assert levels is not None and levels.rules == tuple(rule.name for rule in rule_set(name))
    assert all(levels.of_rules(levels.rules).known) and min(levels.kappa) > 0
    six = levels_of("idm", "v2")
    assert levels.kappa[:6] == six.kappa  # the same rules, the same levels


def test_levels_of_a_set(tmp_path):
    gradients = torch.rand(400, 6, dtype=torch.float64).numpy()
    gradients[:300] = 0.0  # silent in three quarters
    felt = Calibration.fit([gradients], rule_set="v2")
    assert felt.kappa == pytest.approx([float(torch.tensor(column[300:]).quantile(0.75)) for column in gradients.T])
    felt.save(tmp_path)
    Calibration.fit([gradients]).save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calibration-v2.json", "calibration.json"]
    assert Calibration.load(tmp_path, "v2") == felt and Calibration.load(tmp_path).rule_set == "paper"
    plan, context = pressed()
    by_levels, by_rules = attribute(plan, context, None, felt), attribute(plan, context, None, felt, rule_set("v2"))
    torch.testing.assert_close(by_levels.pressure, by_rules.pressure)  # levels bring their rules
