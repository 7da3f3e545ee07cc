"""What a plan gives up, and for whom: the amounts are those of the scene, and nothing is said that is not so."""

from __future__ import annotations

import pytest
import torch

from radp.attribution.trade import trades_of
from radp.rules import RuleContext, rule_set
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route
from tests.rules.road_scenes import BICYCLE, FRONT, band, with_road

ROAD = rule_set("road")
STOP = 30.0  # m that the rear axle goes
TARGET = 8.0 * 8 + 0.25 * 8**2  # m that the goal asks for at 8 m/s


def braking(speed: float = 8.0) -> torch.Tensor:
    """(1, 80, 4) evenly braked to a stop at exactly STOP."""
    time = 0.1 * torch.arange(1, 81, dtype=torch.float64)
    until = time.clamp(max=2 * STOP / speed)
    plan = torch.zeros(1, 80, 4, dtype=torch.float64)
    plan[0, :, 0], plan[0, :, 2] = speed * until - speed**2 / (4 * STOP) * until**2, 1.0
    return plan


def with_bicycle(gap: float, y: float = 0.0, limit: float = 30.0) -> RuleContext:
    """A bicycle that stands `gap` metres before the front bumper of the car that stopped."""
    bicycle = (STOP + FRONT + gap + 1.0, y, 0.0, 0.0, 2.0)
    given = scene(straight_route(pieces=6), agents=[bicycle], speed=8.0, limit=limit)
    return RuleContext.from_scene(with_road(given, (BICYCLE,)))


@pytest.mark.parametrize(
    ("gap", "keeps", "words"),
    [
        (1.9, "vulnerable", "the plan gives up 50.0 m of progress along the route to keep 1.9 m to the cyclist"),
        (0.4, "collision", "the plan gives up 50.0 m of progress along the route to keep 0.4 m to the cyclist"),
    ],
)
def test_progress_is_given_up_for_a_bicycle(gap: float, keeps: str, words: str) -> None:
    (trade,) = trades_of(braking(), with_bicycle(gap), ROAD)
    assert trade is not None and (trade.gives_up, trade.keeps) == ("goal", keeps)
    assert trade.given == pytest.approx(TARGET - STOP, abs=1e-3) and trade.gap == pytest.approx(gap, abs=1e-3)
    assert trade.margin == pytest.approx(gap - (1.5 if keeps == "vulnerable" else 0.0), abs=1e-3)
    assert trade.words(ROAD, "the cyclist") == words
    told = trade.to_json()
    assert (told["keeps_tier"], told["gives_up_tier"]) == ("safety", "progress") and trade.breaks > 0 and trade.push > 0


def test_a_plan_that_brakes_for_nobody_trades_nothing() -> None:
    alone = RuleContext.from_scene(with_road(scene(straight_route(pieces=6), speed=8.0, limit=30.0)))
    aside = with_bicycle(1.9, y=25.0)
    assert trades_of(braking(), alone, ROAD) == trades_of(braking(), aside, ROAD) == [None]
    assert trades_of(braking()[:0], alone.rows(torch.tensor([], dtype=torch.long)), ROAD) == []


def test_what_is_far_away_does_not_hold_the_plan() -> None:
    """A car that made up for 50 m would come near the bicycle, but it keeps 20 m for no reason."""
    assert trades_of(braking(), with_bicycle(20.0), ROAD) == [None]


def test_where_a_faster_plan_would_leave_its_own_path_nothing_is_claimed() -> None:
    """A slow bend that keeps just inside the road: straight on from its end is not where the plan leads."""
    given = scene(straight_route(pieces=6), speed=2.0, limit=30.0)
    context = RuleContext.from_scene(with_road(given, **band(-5.0, 5.0)))
    plan = curved_plan(2.0, 0.02)
    drivable = next(rule for rule in ROAD if rule.name == "drivable")
    assert -1.2 < float(drivable.violation(plan, context).max()) < 0
    assert trades_of(plan, context, ROAD) == [None]


def test_a_plan_that_gives_up_nothing_trades_nothing() -> None:
    """It reaches what the goal asks for, past the bicycle."""
    (trade,) = trades_of(straight_plan(10.1), with_bicycle(1.9, y=6.0), ROAD)
    assert trade is None


def test_the_speed_limit_is_a_reason_too() -> None:
    given = scene(straight_route(pieces=6), speed=8.0, limit=8.5)
    (trade,) = trades_of(straight_plan(8.0), RuleContext.from_scene(with_road(given)), ROAD)
    assert trade is not None and (trade.gives_up, trade.keeps) == ("goal", "speed")
    assert (
        trade.words(ROAD) == "the plan gives up 16.0 m of progress along the route to keep the speed limit by 0.5 m/s"
    )


def test_in_a_batch_each_plan_has_its_own() -> None:
    near = with_bicycle(1.9)
    slow, quick = braking(), straight_plan(10.1)
    first, second = trades_of(torch.cat((slow, quick)), near.repeat_interleave(2), ROAD)
    assert first == trades_of(slow, near, ROAD)[0] and first is not None and second is None


@pytest.mark.parametrize(
    ("rule", "margin", "words"),
    [
        ("red_light", 0.5, "1.5 m to the line of the red light"),
        ("rss", 0.5, "0.5 m more than the safe distance to vehicle 3"),
        ("headway", 0.5, "0.5 m more than the time gap to vehicle 3"),
        ("drivable", 0.5, "0.2 m to the edge of the road"),
        ("drivable", 0.1, "the edge of the road"),  # a corner is off by less than is allowed
        ("oncoming", 0.5, "the direction of the lane by 0.5 m"),
        ("right_of_way", 0.5, "2.0 s to vehicle 3, who goes first"),
        ("lane", 0.5, "the lane boundary by 0.5 m"),
        ("vulnerable", 0.5, "1.5 m to the crosswalk of vehicle 3"),  # no gap of 2 m: the line is what counts
    ],
)
def test_what_is_kept_is_said_in_the_terms_of_its_rule(rule: str, margin: float, words: str) -> None:
    known = {one.name: one for one in ROAD}
    whom = "vehicle 3" if known[rule].name not in ("red_light", "drivable", "oncoming", "lane") else ""
    assert known[rule].kept_words(margin, whom) == words
