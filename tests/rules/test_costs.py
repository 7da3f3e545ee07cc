"""Each rule against costs worked out by an independent plain loop, and its behaviour at the edges."""

from __future__ import annotations

import math

import pytest
import shapely
import shapely.affinity
import torch

from radp.rules import RuleContext, default_rules, rule_costs, rule_gradients
from radp.rules.collision import Collision, Pairs
from radp.rules.goal import Goal
from radp.rules.penalty import penalty
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route

NAMES = [rule.name for rule in default_rules()]


def phi(z: float, sigma: float) -> float:
    x = 10 * z / sigma
    soft = x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))
    return (soft / 10) ** 2


def cost_of(name: str, plan: torch.Tensor, context: RuleContext) -> float:
    return float(rule_costs(plan, context)[0, NAMES.index(name)])


def test_the_six_rules_stand_in_the_papers_order():
    assert NAMES == ["collision", "lane", "speed", "kinematics", "comfort", "goal"]
    assert [rule.weight for rule in default_rules()] == [2.5, 0.8, 0.8, 0.5, 0.8, 1.5]
    assert [rule.scale for rule in default_rules()] == [0.5, 0.5, 1.0, 1.0, 1.0, 5.0]


@pytest.mark.parametrize("z", [-30.0, -1.0, -0.1, 0.0, 0.1, 1.0, 30.0, 500.0])
def test_penalty_is_the_papers_formula(z):
    assert float(penalty(torch.tensor(z, dtype=torch.float64), 0.7)) == pytest.approx(
        phi(z, 0.7), rel=1e-12, abs=1e-300
    )


def test_speed_cost_by_hand():
    context = RuleContext.from_scene(scene(straight_route(), limit=8.0))
    assert cost_of("speed", straight_plan(speed=10.0), context) == pytest.approx(phi(2.0, 1.0), rel=1e-9)
    unlimited = RuleContext.from_scene(scene(straight_route(), limit=None))
    assert cost_of("speed", straight_plan(speed=50.0), unlimited) == 0.0


def test_lane_cost_by_hand():
    context = RuleContext.from_scene(scene(straight_route()))
    y, half, width = 1.0, 1.75, 2.297
    expected = phi(y + width / 2 - half, 0.5) + phi(-y + width / 2 - half, 0.5) + 0.05 * phi(y, 2.0)
    assert cost_of("lane", straight_plan(y=y), context) == pytest.approx(expected, rel=1e-9)


def test_corridor_spans_lanes_side_by_side():
    context = RuleContext.from_scene(scene(straight_route(lanes=2)))
    match = context.match(straight_plan(y=1.0))
    torch.testing.assert_close(match.left_width, torch.full_like(match.left_width, 1.75 + 3.5))
    torch.testing.assert_close(match.right_width, torch.full_like(match.right_width, 1.75))
    assert not default_rules()[1].violated(straight_plan(y=1.5), context)
    assert default_rules()[1].violated(straight_plan(y=-1.0), context)


def test_kinematics_by_hand():
    context = RuleContext.from_scene(scene(straight_route(), speed=2.0))
    rest = phi(-4.5, 1.0) + phi(-0.35, 0.05)
    fast = cost_of("kinematics", straight_plan(speed=2.0, accel=7.0), context)
    assert fast == pytest.approx(phi(1.0, 1.0) + phi(-15.0, 1.0) + rest, rel=1e-6)
    plan = curved_plan(10.0, 0.06)
    at_speed = RuleContext.from_scene(scene(straight_route(), speed=10.0))
    lateral = at_speed.motion(plan).a_lat
    assert float(lateral[0, 40]) == pytest.approx(6.0, rel=1e-3)
    assert float(at_speed.motion(plan).curvature[0, 40]) == pytest.approx(0.06, rel=1e-3)
    assert cost_of("kinematics", plan, at_speed) == pytest.approx(phi(1.5, 1.0), rel=1e-2)


def test_kinematics_of_a_tight_circle_by_hand():
    """2 m/s on a circle of 2.5 m: 1.6 m/s2 aside are few, the bend of 0.4 1/m is 0.05 1/m too much."""
    way = 0.2
    bend = 0.4 * way / (2 * math.sin(0.4 * way / 2) / 0.4)  # turn over chord
    given = RuleContext.from_scene(scene(straight_route(), speed=2.0))
    assert cost_of("kinematics", curved_plan(2.0, 0.4), given) == pytest.approx(phi(bend - 0.35, 0.05), rel=1e-6)


def test_comfort_sees_a_step_in_acceleration():
    context = RuleContext.from_scene(scene(straight_route(), speed=10.0))
    plan = straight_plan(speed=10.0, accel=-1.0)  # the car did not brake before: jerk -10 m/s3 in the first step
    expected = (phi(10.0 - 8.37, 1.0) + 79 * phi(-8.37, 1.0)) / 80 + phi(-8.37, 1.0) + phi(-0.30, 0.1)
    assert cost_of("comfort", plan, context) == pytest.approx(expected, rel=1e-6)


def test_goal_by_hand_and_its_targets():
    route = straight_route(pieces=5)
    context = RuleContext.from_scene(scene(route, speed=10.0))
    assert float(context.target) == pytest.approx(10 * 8 + 0.25 * 64)
    missing = 96.0 - 80.0
    expected = phi(missing, 5.0) + 0.1 * phi(0.0, 0.5) + 0.2 * phi(-1.0, 5.0)
    assert cost_of("goal", straight_plan(speed=10.0), context) == pytest.approx(expected, rel=1e-9)
    short = RuleContext.from_scene(scene(straight_route(pieces=2), speed=10.0))
    assert float(short.target) == pytest.approx(2 * 38 - 10)


def test_red_light_caps_the_target_at_the_front_bumper():
    route = straight_route(pieces=5)
    route[1, :, 8:] = torch.tensor([0.0, 0, 1, 0], dtype=torch.float64)
    context = RuleContext.from_scene(scene(route, speed=10.0))
    assert float(context.target) == pytest.approx(28.0 - 4.049 - 2.0)


def test_route_lanes_may_come_in_any_order():
    route = straight_route(pieces=4, lanes=2)
    shuffled = route[torch.tensor([5, 2, 7, 0, 3, 6, 1, 4])]
    plan = straight_plan(speed=9.0, y=0.4)
    ordered, mixed = (rule_costs(plan, RuleContext.from_scene(scene(r))) for r in (route, shuffled))
    torch.testing.assert_close(ordered, mixed)


def collision_by_loop(plan: torch.Tensor, agent: tuple[float, float, float, float, float]) -> list[tuple[float, float]]:
    """(separation, closing speed) of every step, with a plain loop; boxes parallel to the axes."""
    ax, ay, _, v, length = agent
    out = []
    before = (1.461, 0.0)
    for h in range(plan.shape[1]):
        ex, ey = float(plan[0, h, 0]) + 1.461, float(plan[0, h, 1])
        ox, oy = ax + v * 0.1 * (h + 1), ay
        gap_x = abs(ox - ex) - (5.176 + length) / 2
        gap_y = abs(oy - ey) - (2.297 + 2.0) / 2
        line = math.hypot(ox - ex, oy - ey)
        vx, vy = v - (ex - before[0]) / 0.1, -(ey - before[1]) / 0.1
        closing = max(0.0, -(vx * (ox - ex) + vy * (oy - ey)) / max(line, 1e-9))
        out.append((max(gap_x, gap_y), closing))
        before = (ex, ey)
    return out


def test_collision_pairs_against_a_plain_loop():
    agent = (30.0, 0.0, 0.0, 4.0, 4.5)
    context = RuleContext.from_scene(scene(straight_route(), agents=[agent]))
    plan = straight_plan(speed=9.0)
    pairs = Collision().pairs(plan, context)
    expected = collision_by_loop(plan, agent)
    for step, d, c, z in zip(pairs.step, pairs.separation, pairs.closing, pairs.violation):
        gap, closing = expected[int(step)]
        assert float(d) == pytest.approx(gap, abs=1e-9)
        assert float(c) == pytest.approx(closing, rel=1e-5, abs=1e-6)
        assert float(z) == pytest.approx(0.5 + 0.8 * closing + closing**2 / 8 - gap, rel=1e-4, abs=1e-5)
    assert Collision().violated(plan, context)
    assert not Collision().violated(straight_plan(speed=4.0), context)


def test_collision_cost_lies_between_its_terms_and_is_zero_when_nothing_is_near():
    near = RuleContext.from_scene(scene(straight_route(), agents=[(20.0, 0.0, 0.0, 0.0, 4.5)]))
    plan = straight_plan(speed=8.0)
    pairs = Collision().pairs(plan, near)
    terms = Collision().gate(pairs) * penalty(pairs.violation, 0.5)
    cost = cost_of("collision", plan, near)
    assert float(terms.mean()) < cost <= float(terms.max())
    far = RuleContext.from_scene(scene(straight_route(), agents=[(300.0, 0.0, 0.0, 0.0, 4.5)]))
    assert cost_of("collision", plan, far) == 0.0
    assert cost_of("collision", plan, RuleContext.from_scene(scene(straight_route()))) == 0.0


def test_oncoming_traffic_costs_only_on_a_course_that_meets():
    plan = straight_plan(speed=10.0)

    def oncoming(y: float) -> float:
        return cost_of("collision", plan, RuleContext.from_scene(scene(agents=[(60.0, y, math.pi, 10.0, 4.5)])))

    assert oncoming(0.0) > 1000.0
    assert oncoming(3.8) < 1e-3 * oncoming(0.0)  # the next lane: 1.65 m between the boxes as they pass
    crossing = RuleContext.from_scene(scene(agents=[(22.0, -20.0, math.pi / 2, 10.0, 4.5)]))
    assert cost_of("collision", plan, crossing) > 100.0  # both are at (22, 0) after two seconds


def test_miss_distance_is_the_smallest_gap_on_the_way():
    context = RuleContext.from_scene(scene(agents=[(40.0, 3.0, math.pi, 8.0, 4.5)]))
    plan = straight_plan(speed=10.0)
    pairs = Collision().pairs(plan, context)
    before = pairs.step < 20  # still apart along the road
    assert before.any()
    torch.testing.assert_close(pairs.miss[before], torch.full_like(pairs.miss[before], 3.0 - (2.297 + 2.0) / 2))


def test_verdict_of_contact_agrees_with_shapely():
    generator = torch.Generator().manual_seed(0)
    for _ in range(40):
        x, y, heading = (
            torch.rand(3, generator=generator, dtype=torch.float64) * torch.tensor([40.0, 8.0, 6.28])
        ).tolist()
        context = RuleContext.from_scene(scene(straight_route(), agents=[(x, y - 4, heading, 0.0, 4.5)]))
        plan = curved_plan(5.0, 0.01)
        box = shapely.affinity.rotate(shapely.box(x - 2.25, y - 5, x + 2.25, y - 3), heading, use_radians=True)
        touched = False
        for px, py, c, s in plan[0].tolist():
            ego = shapely.box(-1.127, -2.297 / 2, 4.049, 2.297 / 2)
            ego = shapely.affinity.rotate(ego, math.atan2(s, c), origin=(0, 0), use_radians=True)
            touched |= shapely.affinity.translate(ego, px, py).intersects(box)
        assert bool(Collision().violated(plan, context)) == touched


@pytest.mark.parametrize("rule", default_rules(), ids=NAMES)
def test_gradient_is_right_in_float64(rule):
    agents = [(18.0, 0.5, 0.1, 2.0, 4.5), (35.0, -1.0, 0.0, 6.0, 8.0)]
    context = RuleContext.from_scene(scene(straight_route(lanes=2), agents=agents, speed=8.0, limit=8.0))
    plan = curved_plan(8.3, 0.004, steps=80)
    plan[0, :, 1] += 0.3 * torch.sin(torch.arange(80, dtype=torch.float64))
    context = context.bind(plan)
    if rule.name == "collision":  # gate and weights are held fixed by definition, so hold them fixed here as well
        pairs = rule.pairs(plan, context)
        weights = rule.weights(pairs)
        function = lambda x: (weights * penalty(rule.pairs(x, context).violation, rule.scale)).sum()  # noqa: E731
    else:
        function = lambda x: rule.cost(x, context).sum()  # noqa: E731
    assert torch.autograd.gradcheck(function, (plan.requires_grad_(),), eps=1e-6, atol=1e-6, rtol=1e-4)


def test_six_gradients_in_one_pass_equal_six_passes():
    context = RuleContext.from_scene(scene(straight_route(), agents=[(25.0, 0.3, 0.0, 2.0, 4.5)], limit=8.0))
    plan = curved_plan(9.0, 0.01)
    costs, gradients = rule_gradients(plan, context)
    bound = context.bind(plan)
    for i, rule in enumerate(default_rules()):
        x = plan.clone().requires_grad_()
        cost = rule.cost(x, bound)
        (gradient,) = torch.autograd.grad(cost.sum(), x)
        torch.testing.assert_close(gradients[:, i], gradient)
        torch.testing.assert_close(costs[:, i], cost.detach())


def test_standing_car_nothing_known_and_one_point_lanes_are_finite():
    point = straight_route(pieces=1, length=0.0)
    for given in (
        scene(),
        scene(speed=0.0),
        scene(point, speed=0.0, limit=None),
        scene(straight_route(), speed=0.0, agents=[(0.0, 0.0, 0.0, 0.0, 4.5)]),
    ):
        for plan in (torch.zeros(1, 80, 4, dtype=torch.float64), straight_plan(speed=0.0)):
            costs, gradients = rule_gradients(plan, RuleContext.from_scene(given))
            assert torch.isfinite(costs).all() and torch.isfinite(gradients).all()
    costs, _ = rule_gradients(straight_plan(), RuleContext.from_scene(scene()))
    assert costs[0, NAMES.index("lane")] == 0 and costs[0, NAMES.index("goal")] == 0


def test_padding_changes_nothing():
    agents = [(20.0, 1.0, 0.0, 3.0, 4.5)]
    plan = straight_plan(speed=9.0, y=0.3)
    small = RuleContext.from_scene(scene(straight_route(), agents=agents, slots=1, route_slots=4))
    large = RuleContext.from_scene(scene(straight_route(), agents=agents, slots=20, route_slots=25))
    torch.testing.assert_close(rule_costs(plan, small), rule_costs(plan, large))


def test_expert_end_is_the_target_in_training():
    from dataclasses import replace

    given = scene(straight_route(pieces=5))
    future = torch.zeros(1, 80, 3, dtype=torch.float64)
    future[0, :, 0] = torch.linspace(0.5, 40.0, 80)
    context = RuleContext.from_scene(replace(given, ego_agent_future=future), logged=True)
    assert float(context.target) == pytest.approx(40.0)
    future[0, 50:] = 0.0
    context = RuleContext.from_scene(replace(given, ego_agent_future=future), logged=True)
    assert float(context.target) == pytest.approx(float(future[0, 49, 0]))
    assert Goal().violated(straight_plan(speed=1.0), context)


def test_weights_are_the_softmax_of_gate_times_missing_share():
    """Two scenes, five pairs with gates of their own: the weights against the formula, pair by pair."""
    scenes = [0, 0, 0, 1, 1]
    separation = torch.tensor([0.1, -0.3, 2.0, 0.3, 30.0], dtype=torch.float64)
    closing = torch.tensor([0.0, 1.0, 6.0, 0.5, 0.0], dtype=torch.float64)
    safe = 0.5 + 0.8 * closing + closing**2 / 8
    where = torch.tensor(scenes), torch.tensor([3, 3, 9, 0, 1]), torch.tensor([0, 1, 2, 0, 1])
    miss = torch.tensor([0.0, 0.4, -1.0, 0.2, 0.0], dtype=torch.float64)
    rule = Collision()
    pairs = Pairs(*where, separation, closing, safe - separation, miss, scenes=2)
    gates = rule.gate(pairs).tolist()
    assert gates[4] == 0 and len({round(gate, 3) for gate in gates}) == 5
    shares = [max(0.0, min(1.0, float((s - d) / max(s, 0.5)))) for s, d in zip(safe, separation)]
    for scene_number in (0, 1):
        mine = [i for i in range(5) if scenes[i] == scene_number and gates[i] > 0]
        powers = {i: math.exp(8.0 * gates[i] * shares[i]) for i in mine}
        for i in mine:
            wanted = gates[i] * powers[i] / sum(powers.values())
            assert rule.weights(pairs)[i].item() == pytest.approx(wanted, rel=1e-12)
    assert rule.weights(pairs)[4] == 0


def sigmoid(x: float) -> float:
    return (1 + math.tanh(x / 2)) / 2


@pytest.mark.parametrize("rule", [Collision(), Collision(from_now=3.0), Collision(discount=2.0)])
def test_the_gate_is_the_formula_pair_by_pair(rule):
    """Separation, closing speed, missing clearance, miss distance, step: near and far, slow and fast, soon and late."""
    rows = [
        (0.2, 0.0, 0.3, 0.0, 0), (1.0, 0.05, 0.1, -1.0, 5), (4.0, 3.0, 1.0, 0.1, 20), (12.0, 9.0, 4.0, 0.6, 30),
        (19.9, 11.0, 9.0, -2.0, 40), (20.0, 11.0, 9.0, -2.0, 3), (20.1, 11.0, 9.0, -2.0, 3), (-0.5, 1.0, 2.0, -1.0, 70),
        (0.6, 0.0, 0.05, 0.0, 9), (0.9, 0.0, -0.4, 0.0, 1),
    ]  # fmt: skip
    separation, closing, lacking, miss = (torch.tensor(column, dtype=torch.float64) for column in list(zip(*rows))[:4])
    step, zeros = torch.tensor([row[4] for row in rows]), torch.zeros(len(rows), dtype=torch.int64)
    pairs = Pairs(zeros, step, torch.arange(len(rows)), separation, closing, lacking, miss, scenes=1)
    for (d, c, z, m, h), found in zip(rows, rule.gate(pairs).tolist()):
        time, ttc = 0.1 * (h + 1), max(d, 0.0) / max(c, 1e-3)
        near, left = sigmoid((0.5 - d) / 0.25), 4.0 - ttc
        if rule.from_now is not None:
            near, left = near * sigmoid((rule.from_now - time) / 0.5), rule.from_now - time - ttc
        soon = sigmoid(left / 0.5) * (1 - math.exp(-c)) * sigmoid((0.5 - m) / 0.25)
        wanted = max(near, soon) * sigmoid(z / 0.25) * (d <= 20.0)
        wanted *= 1.0 if rule.discount is None else math.exp(-time / rule.discount)
        assert found == pytest.approx(wanted if wanted >= 0.01 else 0.0, rel=1e-9)


def test_one_active_pair_alone_has_its_gate_as_weight():
    for d, lacking in ((0.1, 0.4), (1.1, 0.05), (1.4, 0.3)):  # strong and hardly active
        one = torch.zeros(1, dtype=torch.int64)
        values = (torch.tensor([value], dtype=torch.float64) for value in (d, 0.0, lacking, 0.0))
        pairs = Pairs(one, one, one, *values, scenes=1)
        gate = Collision().gate(pairs)
        assert gate.item() > 0 and Collision().weights(pairs).item() == pytest.approx(gate.item(), rel=1e-12)


def test_pairs_with_ample_clearance_are_not_looked_at():
    here, aside = straight_plan(speed=0.0), [(0.0, 12.0, 0.0, 0.0, 4.5)]
    assert len(Collision().pairs(here, RuleContext.from_scene(scene(agents=aside, speed=0.0))).scene) == 0
    closer = RuleContext.from_scene(scene(agents=[(0.0, 3.0, 0.0, 0.0, 4.5)], speed=0.0))
    assert len(Collision().pairs(here, closer).scene) == 80
