"""Hand-made scenes with what the rules of the road look at."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from radp.rules import RuleContext
from radp.scenario import ObjectType
from radp.scene.scene import RoadView, RuleView, Scene
from tests.rules.hand_made import LANE_WIDTH, POINTS, scene, straight_plan, straight_route

FRONT, REAR_TO_CENTER, HALF_WIDTH = 4.049, 1.461, 2.297 / 2
PEDESTRIAN, BICYCLE = int(ObjectType.PEDESTRIAN), int(ObjectType.BICYCLE)


def with_road(given: Scene, kinds: tuple[int, ...] = (), **known: Tensor) -> Scene:
    """The scene with a RoadView of its own: kinds of its first agents, and fields that are known."""
    view = RoadView.of(given)
    assert view is not None
    types = view.object_types.clone()
    types[0, : len(kinds)] = torch.tensor(kinds, dtype=types.dtype)
    road = replace(view, object_types=types, **known)
    return replace(given, rules=replace(RuleView.of(given), road=road))


def band(low: float, high: float, reach: float = 300.0) -> dict[str, Tensor]:
    """The border of a road along x between two y."""
    pieces = torch.tensor([[[-80.0, low, 200.0, low], [200.0, high, -80.0, high], [0.0] * 4]], dtype=torch.float64)
    return {"border": pieces, "border_reach": torch.full((1, 1), reach, dtype=torch.float64)}


def lane_along(y: float, backwards: bool) -> Tensor:
    """(1, 1, 20, 4) a lane along x, or against it."""
    row = torch.zeros(1, 1, POINTS, 4, dtype=torch.float64)
    x = torch.linspace(-20.0, 132.0, POINTS, dtype=torch.float64)
    row[0, 0, :, 0], row[0, 0, :, 1] = x.flip(0) if backwards else x, y
    row[..., 2:] = LANE_WIDTH / 2
    return row


def red_route(*rows: int, pieces: int = 5, start: float = -10.0) -> Tensor:
    """A straight route whose pieces `rows` have a red light."""
    route = straight_route(pieces=pieces, start=start)
    for row in rows:
        route[row, :, 8:] = torch.tensor([0.0, 0, 1, 0], dtype=torch.float64)
    return route


def busy() -> tuple[Tensor, RuleContext]:
    """A winding plan that every one of the eight rules has something to say about, bound to its context."""
    agents = [(22.0, 0.4, 0.0, 6.0, 4.5), (26.0, 3.0, 0.3, 0.0, 1.0), (34.0, -14.0, 1.57, 4.5, 4.5)]
    given = scene(red_route(2, pieces=9), agents=agents, speed=8.0, limit=30.0)
    lanes = lane_along(0.0, backwards=True)
    given = with_road(given, (0, PEDESTRIAN, 0), lanes=lanes, **band(-1.6, 1.6))
    plan = straight_plan(8.3)
    plan[0, :, 1] += 0.3 * torch.sin(torch.arange(80, dtype=torch.float64))
    return plan, RuleContext.from_scene(given).bind(plan)
