"""The route under a plan: against a reference in plain Python, and at its bounds by hand."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from radp.rules.route import Match, Route
from radp.scene.scene import LaneColumn, RuleView
from tests.rules.plain_route import PlainRoute

POINTS, MINIMUM = 5, 4.0
Rows = list[list[float]]
Row = Rows | None  # None: a row that is missing


def line(
    points: list[tuple[float, float]], left: float = 2.0, right: float = 1.5, **lights: float
) -> list[list[float]]:
    """Rows of a lane through these points, its borders straight up and down."""
    rows = []
    for x, y in points:
        row = [0.0] * len(LaneColumn)
        row[LaneColumn.X], row[LaneColumn.Y], row[LaneColumn.LEFT_Y], row[LaneColumn.RIGHT_Y] = x, y, left, -right
        for name, value in lights.items():
            row[LaneColumn[name]] = value
        rows.append(row)
    return rows


def straight(
    x: float, y: float = 0.0, length: float = 20.0, count: int = POINTS, turn: float = 0.0, **known: float
) -> Row:
    """A straight lane from (x, y), in the direction `turn`."""
    way = math.cos(turn), math.sin(turn)
    steps = [length * k / (count - 1) for k in range(count)]
    return line([(x + s * way[0], y + s * way[1]) for s in steps], **known)


def view(scenes: list[list[Row]], links: list[list[tuple[int, int]]] | None = None, limits: bool = True) -> RuleView:
    """A view with a row for each lane; the limit of row i is 10 + i m/s, and every third is unknown."""
    count = next((len(row) for rows in scenes for row in rows if row is not None), POINTS)
    blank = [[0.0] * len(LaneColumn)] * count
    lanes = torch.tensor([[blank if row is None else row for row in rows] for rows in scenes], dtype=torch.float64)
    size = lanes.shape[:2]
    known = torch.arange(size[1]).expand(size).remainder(3).ne(2).unsqueeze(-1) & limits
    limit = (10.0 + torch.arange(size[1], dtype=torch.float64)).expand(size).unsqueeze(-1)
    joined = torch.zeros(*size, size[1], dtype=torch.bool)
    for b, pairs in enumerate(links or []):
        for i, j in pairs:
            joined[b, i, j] = True
    objects = torch.zeros(size[0], 1, 8, dtype=torch.float64)
    return RuleView(objects, 1, lanes, limit, known, joined if links is not None else None)


def route(*rows: Row, links: list[tuple[int, int]] | None = None) -> Route:
    return Route.of(view([list(rows)], None if links is None else [links]))


def starts(given: Route) -> list[float]:
    return [round(x, 9) for x in given.station[0, :, 0].tolist()]


def at(given: Route, *points: tuple[float, float]) -> Match:
    return given.match(torch.tensor([points], dtype=torch.float64))


def wild(draws: random.Random) -> list[Row]:
    """A road of two or three winding lanes in pieces, one that comes back, one far ahead, gaps among the rows."""
    turn, bend = draws.uniform(-0.4, 0.4), draws.uniform(-0.02, 0.02)
    rows: list[Row] = [None, None]
    for aside in range(draws.choice((2, 3))):
        x, y = draws.uniform(-25, 0), 3.5 * aside + draws.uniform(-0.5, 0.5)
        for _ in range(3):
            points = [(x, y)]
            for k in range(POINTS - 1):
                step, heading = draws.uniform(3, 8), turn + bend * (len(rows) + k) + draws.uniform(-0.2, 0.2)
                points.append((points[-1][0] + step * math.cos(heading), points[-1][1] + step * math.sin(heading)))
            rows.append(line(points))
            x, y = points[-1][0] + draws.uniform(-1, 1), points[-1][1] + draws.uniform(-1, 1)
    rows.append(line([(-x, 6.0) for x in range(0, 5 * POINTS, 5)]))  # against the ego
    rows.append(line([(4.0, 9.0), (-4.0, 9.0), (-8.0, 12.0), (4.0, 14.0), (30.0, 14.0)]))  # backwards at first alone
    rows.append(line([(200.0 + 6 * k, 30.0 + 2 * k) for k in range(POINTS)]))  # linked with nothing
    for row in rows:
        for point in row or []:
            for column in (LaneColumn.LEFT_X, LaneColumn.LEFT_Y, LaneColumn.RIGHT_X, LaneColumn.RIGHT_Y):
                point[column] += draws.uniform(-0.5, 0.5)
        for name in (LaneColumn.IS_RED, LaneColumn.IS_GREEN):
            value = draws.choice((0.0, 0.0, 0.5, 0.7, 1.0))
            for k, point in enumerate(row or []):
                point[name] = value if k == 0 else 1.0 - value
    return draws.sample(rows, len(rows))


def pair_of(seed: int) -> tuple[list[list[Row]], list[list[tuple[int, int]]] | None]:
    """Two scenes of as many rows, and links that the map says (or none: ends that meet)."""
    draws = random.Random(seed)
    scenes = [wild(draws), wild(draws)]
    most = max(map(len, scenes))
    scenes = [rows + [None] * (most - len(rows)) for rows in scenes]
    if seed % 2:
        return scenes, None
    there = [[i for i, row in enumerate(rows) if row is not None] for rows in scenes]
    return scenes, [[tuple(draws.sample(rows, 2)) for _ in range(7)] for rows in there]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(6))
def test_a_route_is_what_plain_python_makes_of_it(seed: int) -> None:
    scenes, links = pair_of(seed)
    found = Route.of(view(scenes, links))
    used = [0] + [i for i in range(1, len(scenes[0])) if any(rows[i] is not None for rows in scenes)]
    assert found.table.shape == (2, len(used), POINTS, 9) and found.links.shape == (2, len(used), len(used))
    for b, rows in enumerate(scenes):
        plain = PlainRoute(rows, None if links is None else links[b])
        there = [i in plain.lanes for i in used]
        assert found.placed[b].tolist() == there
        joined = {(used[i], used[j]) for i, j in found.links[b].nonzero().tolist()}
        assert joined == set(plain.links)
        for n, i in enumerate(used):
            if not there[n]:
                continue
            lane = plain.lanes[i]
            wanted = [plain.start[i] + lane.along(k) for k in range(POINTS)]
            torch.testing.assert_close(
                found.station[b, n], torch.tensor(wanted, dtype=torch.float64), rtol=0, atol=1e-9
            )
            torch.testing.assert_close(
                found.points[b, n], torch.tensor(lane.points, dtype=torch.float64), rtol=0, atol=0
            )
            assert bool(found.red[b, n]) == lane.is_red and float(found.speed_limit[b, n]) == 10.0 + i
            assert bool(found.has_speed_limit[b, n]) == (i % 3 != 2)
        assert not found.red[b][~found.placed[b]].any() and not found.has_speed_limit[b][~found.placed[b]].any()
        assert float(found.end[b]) == pytest.approx(plain.end())
        for minimum in (-50.0, MINIMUM, 15.0):
            assert float(found.stop_line(minimum)[b]) == pytest.approx(plain.stop_line(minimum))
            assert float(found.red_line(minimum)[b]) == pytest.approx(plain.red_line(minimum))


@pytest.mark.parametrize("seed", range(6))
def test_a_match_is_what_plain_python_makes_of_it(seed: int) -> None:
    scenes, links = pair_of(seed)
    found, draws = Route.of(view(scenes, links)), random.Random(seed)
    points = [[(draws.uniform(-30, 90), draws.uniform(-10, 25)) for _ in range(16)] for _ in scenes]
    places = torch.tensor(points, dtype=torch.float64)
    match, bends, green = found.match(places), found.curvature(places), found.is_green(places)
    for b, rows in enumerate(scenes):
        plain = PlainRoute(rows, None if links is None else links[b])
        for h, point in enumerate(points[b]):
            if plain.undecided(point):
                continue
            for name, value in plain.match(point).items():
                wanted = torch.tensor(value, dtype=torch.float64)
                torch.testing.assert_close(getattr(match, name)[b, h], wanted, rtol=0, atol=1e-9, msg=name)
            lane = plain.lane_at(point)
            assert float(bends[b, h]) == pytest.approx(plain.curvature(point)) and bool(match.valid[b, h])
            assert bool(green[b, h]) == plain.lanes[lane].is_green and float(match.speed_limit[b, h]) == 10.0 + lane
            assert bool(match.has_speed_limit[b, h]) == (lane % 3 != 2)


def test_lateral_and_progress_by_hand() -> None:
    """A lane towards (3, 4) / 5; the ego is 3.4 m behind its start, so that its second vertex has station 6.6."""
    given = route(line([(-3.0, -2.0), (3.0, 6.0), (9.0, 14.0)]), straight(100.0, count=3))
    plan = torch.tensor([[[3.0, 6.0, 1.0, 0.0], [3.0 - 0.8, 6.0 + 0.6, 1.0, 0.0], [7.0, 9.0, 0.0, 1.0]]]).double()
    match = given.match(plan[..., :2])
    torch.testing.assert_close(match.lateral(plan), torch.tensor([[0.0, 1.0, -1.4]]).double())
    torch.testing.assert_close(match.progress(plan), torch.tensor([[6.6, 6.6, 11.4]]).double())


def test_beyond_a_corner_the_next_segment_counts() -> None:
    corner = route(line([(-4.0, 0.0), (0.0, 0.0), (0.0, 4.0)]))
    match = at(corner, (1.0, -1.0), (-1.0, -1.0), (0.5, 6.0))
    assert match.tangent.tolist() == [[[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]]
    assert match.anchor.tolist() == [[[0.0, 0.0], [-4.0, 0.0], [0.0, 0.0]]] and match.station.tolist() == [[0, -4, 0]]


def test_ends_closer_than_a_metre_and_a_half_are_linked() -> None:
    for gap, linked in ((1.25, True), (1.5, False), (2.0, False)):
        assert bool(route(straight(-10.0), straight(10.0 + gap)).links[0, 0, 1]) == linked
    circle = line([(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0), (0.0, 0.0)])
    assert not route(circle).links.any()  # a lane does not follow itself
    assert not route(circle, None).links.any()  # nor does a row that is missing


def test_lanes_up_to_fifteen_metres_aside_are_beside_the_ego() -> None:
    """Of two lanes of which one is beside the ego, only that one is placed by it; the other follows by the links."""
    for y, beside in ((15.0, True), (15.5, False), (20.0, False)):
        given = route(straight(-10.0, y), straight(-4.0, 40.0), links=[(1, 0)])
        assert starts(given) == [-10.0, -30.0]
        shifted = route(straight(-10.0, y), straight(-3.0, 2.0), links=[(1, 0)])
        assert starts(shifted) == ([-10.0, -3.0] if beside else [17.0, -3.0])


def test_a_lane_that_begins_or_ends_at_the_ego_is_beside_it() -> None:
    """If it were not, it would be placed by its link to the lane of the ego."""
    other = straight(-7.0, 2.0, length=20.0)
    assert starts(route(other, straight(0.0, 1.0), links=[(0, 1)])) == [-7.0, 0.0]
    assert starts(route(other, straight(-20.0, 1.0), links=[(0, 1)])) == [-7.0, -20.0]
    assert starts(route(other, straight(0.5, 1.0), links=[(0, 1)])) == [-7.0, 13.0]
    assert starts(route(other, straight(-20.5, 1.0), links=[(0, 1)])) == [-7.0, 13.0]
    assert starts(route(other, straight(-0.5, 1.0), links=[(0, 1)])) == [-7.0, -0.5]


def test_a_lane_that_begins_against_the_ego_is_not_beside_it() -> None:
    """Its first direction counts: up to 120 degrees away."""
    other = straight(-7.0, 2.0, length=20.0)
    for degrees, beside in ((110, True), (125, False), (140, False)):
        turn = math.radians(degrees)
        crossing = straight(-8 * math.cos(turn), 3.0 - 8 * math.sin(turn), turn=turn, length=16.0)
        placed = starts(route(other, crossing, links=[(0, 1)]))[1]
        assert (placed == pytest.approx(13.0)) == (not beside)
    turning = line([(4.0, 3.0), (0.0, 3.0), (0.0, 8.0), (0.0, 13.0), (0.0, 18.0)])
    assert starts(route(other, turning, links=[(0, 1)]))[1] == 13.0
    step = -2.5, 2.5 * math.sqrt(3)  # 120 degrees: no longer
    exactly = line([(1.0 + k * step[0], -4.0 + k * step[1]) for k in range(POINTS)])
    given = route(other, exactly, links=[(0, 1)])
    assert float(given.table[0, 1, 0, 2]) == -0.5 and starts(given)[1] == 13.0


def test_without_a_lane_beside_it_the_nearest_places_the_ego() -> None:
    """80 m and 40 m ahead of the ego: the nearer one is placed by itself, the other by it."""
    given = route(None, straight(80.0, 5.0), straight(40.0, 3.0), links=[])
    assert given.placed.tolist() == [[False, True, True]] and starts(given)[1:] == [80.0, 40.0]
    turned = route(straight(80.0, 5.0, turn=1.0), straight(40.0, 3.0), links=[])
    assert starts(turned) == [80.0, 40.0]  # its own direction says nothing of how far it is away
    assert not route(None).placed.any() and float(route(None, None).end) == 0.0


def test_lanes_follow_by_links_in_any_order_and_over_many_pieces() -> None:
    """Seven pieces of 20 m in a row whose points lie anywhere; the fourth is the ego's."""
    places = [(300.0, 90.0), (-200.0, 80.0), (50.0, -300.0), (-10.0, 0.0), (500.0, 0.0), (0.0, 700.0), (90.0, 90.0)]
    pieces = [straight(x, y) for x, y in places]
    chain = [(i, i + 1) for i in range(6)]
    given = route(*pieces, links=chain)
    assert starts(given) == [-70.0, -50.0, -30.0, -10.0, 10.0, 30.0, 50.0] and float(given.end) == 70.0


def test_where_lanes_join_the_longer_way_counts_and_where_they_part_the_nearer_one() -> None:
    long, short = straight(-10.0, 0.0, length=40.0), straight(-10.0, 3.0, length=20.0)
    assert starts(route(long, short, straight(500.0), links=[(0, 2), (1, 2)]))[2] == 30.0
    assert starts(route(short, long, straight(10.0, 3.0), links=[(0, 2), (1, 2)]))[2] == 30.0  # also if one meets it
    assert starts(route(straight(-5.0), straight(-8.0, 3.0), straight(500.0), links=[(2, 0), (2, 1)]))[2] == -28.0
    both = route(long, straight(-4.0, 3.0), straight(500.0), links=[(0, 2), (2, 1)])
    assert starts(both)[2] == 30.0  # what leads to it counts more than where it leads


def test_red_lines_by_hand() -> None:
    """Red at -10, 10 and 30 m; the piece at 30 m goes on the red one at 10 m, which follows a green one."""
    pieces = [straight(x, IS_RED=float(x != -10.0), IS_GREEN=float(x == -10.0)) for x in (-10.0, 10.0, 30.0)]
    given = route(*pieces)
    assert [float(given.stop_line(m)) for m in (0.0, 10.0, 10.5, 30.0, 31.0)] == [10.0, 10.0, 30.0, 30.0, math.inf]
    assert [float(given.red_line(m)) for m in (0.0, 9.5, 10.0)] == [10.0, 10.0, math.inf]
    apart = Route.of(replace(view([pieces]), route_links=torch.zeros(1, 3, 3, dtype=torch.bool)))
    assert [float(apart.red_line(m)) for m in (9.5, 10.0, 29.0)] == [10.0, 30.0, 30.0]
    points = torch.tensor([[(-5.0, 0.0), (15.0, 0.0)]], dtype=torch.float64)
    assert given.is_green(points).tolist() == [[True, False]]


def test_the_corridor_ends_where_lanes_are_no_longer_side_by_side() -> None:
    """The other lane reaches 2 m to its left, 1.5 m to its right; vertices are 5 m apart."""
    base = straight(-10.0)
    for y, left in ((3.5, 5.5), (15.0, 17.0), (15.5, 2.0), (20.0, 2.0)):
        match = at(route(base, straight(-10.0, y)), (-0.5, 0.0))
        assert match.left_width.tolist() == [[left]] and match.right_width.tolist() == [[1.5]]
        match = at(route(base, straight(-10.0, -y)), (-0.5, 0.0))
        assert match.left_width.tolist() == [[2.0]] and match.right_width.tolist() == [[left - 0.5]]
    for x, left in ((5.0, 5.5), (5.5, 2.0), (6.0, 2.0)):  # it starts up to one spacing ahead
        assert at(route(base, straight(x, 3.5)), (0.0, 0.0)).left_width.tolist() == [[left]]
    two = route(straight(-10.0, count=2), straight(30.0, 3.5, count=2))  # one spacing is the whole lane
    assert at(two, (10.0, 0.0)).left_width.tolist() == [[5.5]]
    for turn, beside in ((0.6, True), (0.7, False)):  # 34 and 40 degrees: the bound lies at 36.9
        other = straight(-10.0 * math.cos(turn), 5.0 - 10.0 * math.sin(turn), turn=turn)
        assert (float(at(route(base, other), (0.0, 0.0)).left_width[0, 0]) > 2.0) == beside
    exactly = line([(-8.0, 0.0), (-4.0, 3.0), (0.0, 6.0), (4.0, 9.0), (8.0, 12.0)])  # cosine 0.8
    assert float(at(route(base, exactly), (0.0, 0.0)).left_width[0, 0]) == pytest.approx(8.0)


def test_borders_between_vertices_are_those_in_between() -> None:
    """Also where vertices are 4 cm apart: a quarter of the way from a width of 2 m to one of 6 m."""
    for spacing in (4.0, 0.04):
        rows = line([(spacing * k, 0.0) for k in range(3)])
        rows[1][LaneColumn.LEFT_Y], rows[1][LaneColumn.RIGHT_Y] = 6.0, -5.5
        match = at(route(rows), (0.25 * spacing, 0.5), (1.75 * spacing, 0.5))
        torch.testing.assert_close(match.left_width, torch.tensor([[3.0, 3.0]]).double())
        torch.testing.assert_close(match.right_width, torch.tensor([[2.5, 2.5]]).double())


def test_curvature_at_bounds() -> None:
    """A right angle within 4 cm, and one whose sine rounds to more than 1."""
    tiny = line([(0.0, 0.0), (0.01, 0.0), (0.02, 0.0), (0.02, 0.01), (0.02, 0.02)])
    here = torch.tensor([[(0.02, 0.0)]], dtype=torch.float64)
    assert float(route(tiny).curvature(here)) == pytest.approx(math.pi / 2 / 0.04)
    table = torch.zeros(1, 1, 5, 9)
    table[0, 0, :, 0] = table[0, 0, :, 8] = torch.arange(5.0)
    a, b = rounded_up()
    table[0, 0, :3, 2:4], table[0, 0, 3:, 2:4] = a, b
    given = route(tiny)
    bent = replace(given, table=table).curvature(torch.tensor([[(2.0, 0.0)]]))
    assert float(bent) == pytest.approx(math.pi / 8, rel=1e-3)


def rounded_up() -> tuple[Tensor, Tensor]:
    """Two unit vectors of float32 whose cross product is more than 1."""
    turn = torch.linspace(0.0, 1.5, 1000)
    a = torch.stack((turn.cos(), turn.sin()), -1)
    b = torch.stack((-turn.sin(), turn.cos()), -1)
    size = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    assert float(size.max()) > 1.0
    return a[size.argmax()], b[size.argmax()]


def test_a_scene_without_a_route_has_none_whatever_the_others_have() -> None:
    given = Route.of(view([[straight(-10.0), None], [None, None]]))
    match = given.match(torch.zeros(2, 3, 2, dtype=torch.float64))
    assert given.placed.tolist() == [[True], [False]] and match.valid.tolist() == [[True] * 3, [False] * 3]
    assert match.has_speed_limit.tolist() == [[True] * 3, [False] * 3] and given.end.tolist() == [10.0, 0.0]
    part = given.match(torch.zeros(2, 5, 2, dtype=torch.float64)).steps(1, 3)
    assert part.valid.shape == part.left_width.shape == (2, 2)
    dangling = Route.of(view([[straight(-10.0), None], [straight(-10.0), straight(10.0)]], [[(0, 1)], [(0, 1)]]))
    assert dangling.placed.tolist() == [[True, False], [True, True]]  # a link to a missing lane places nothing
    half = straight(-10.0)
    half[-1] = [0.0] * len(LaneColumn)
    assert Route.of(view([[half]])).placed.all()  # a lane of which a point is missing is still one
