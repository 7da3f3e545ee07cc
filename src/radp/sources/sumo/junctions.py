"""Junctions of our own: every builder draws its proportions from a generator and returns a `Blueprint`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from radp.sources.sumo.blueprint import Blueprint
from radp.sources.sumo.demand import TrafficRates
from radp.sources.sumo.plain import LANE_WIDTH, PlainNet, sine_warp
from radp.sources.sumo.streets import Arm, cross_all, join, two_way

PROTECTED = ("--tls.minor-left.max-speed", "0")  # left turns only on their own green
PERMISSIVE = ("--tls.left-green.time", "0")  # left turns give way on the common green


def _radius(metres: float) -> tuple[str, str]:
    return "--default.junctions.radius", f"{metres:.1f}"


def _around(rng: np.random.Generator, arms: int, jitter: float) -> np.ndarray:
    """Directions of the arms of a junction [rad]."""
    even = np.arange(arms) * 2 * np.pi / arms
    return even + rng.uniform(0, 2 * np.pi) + np.radians(rng.uniform(-jitter, jitter, arms))


def _polar(angle: float, length: float) -> np.ndarray:
    return length * np.array([np.cos(angle), np.sin(angle)])


def _bend(net: PlainNet, rng: np.random.Generator, strength: float = 1.0) -> None:
    net.bend(sine_warp(rng, strength * rng.uniform(6, 14), rng.uniform(380, 480)))


def four_way(rng: np.random.Generator, protected: bool) -> Blueprint:
    """A signalised crossing of two multi-lane roads, with crosswalks; a kerb bay or an unmarked crossing on arms."""
    net = PlainNet()
    net.node("c", (0, 0), "traffic_light")
    lanes = [int(rng.integers(2, 5)), int(rng.integers(2, 4))]
    speeds = [float(rng.choice([13.89, 16.67])), float(rng.choice([11.11, 13.89]))]
    middles = rng.permutation(["kerb", "jay", "", ""])
    arms = []
    for i, angle in enumerate(_around(rng, 4, 12)):
        net.node(f"f{i}", _polar(angle, rng.uniform(380, 460)))
        middle, bike = str(middles[i]), bool(rng.random() < 0.3)
        arms.append(two_way(net, "c", f"f{i}", lanes[i % 2], speeds[i % 2], middle, bike=bike)[0])
    join(net, arms)
    cross_all(net, "c", arms)
    _bend(net, rng)
    cycle = ("--tls.cycle.time", str(int(rng.choice([60, 70, 80, 90]))))
    options = (*(PROTECTED if protected else PERMISSIVE), *cycle, *_radius(rng.uniform(9, 11)))
    return Blueprint(net, options, TrafficRates(per_lane=rng.uniform(0.05, 0.09), persons=0.014))


def corridor(rng: np.random.Generator) -> Blueprint:
    """An arterial with two or three signalised crossings in a row."""
    net, count, gap = PlainNet(), int(rng.integers(2, 4)), rng.uniform(230, 300)
    lanes, side = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    for i in range(count):
        net.node(f"c{i}", (i * gap, 0), "traffic_light")
    net.node("w", (-rng.uniform(360, 420), 0))
    net.node("e", ((count - 1) * gap + rng.uniform(360, 420), 0))
    arms: dict[str, list[Arm]] = {f"c{i}": [] for i in range(count)}
    chain = ["w", *arms, "e"]
    bay = int(rng.integers(len(chain) - 1))
    for i, (a, b) in enumerate(pairwise(chain)):
        for node, arm in zip((a, b), two_way(net, a, b, lanes, 13.89, "kerb" if i == bay else "")):
            if node in arms:
                arms[node].append(arm)
    for i, node in enumerate(list(arms)):
        for name, angle in ((f"n{i}", np.pi / 2), (f"s{i}", -np.pi / 2)):
            net.node(name, net.place(node) + _polar(angle + np.radians(rng.uniform(-12, 12)), rng.uniform(330, 380)))
            arms[node].append(two_way(net, node, name, side, 11.11)[0])
        join(net, arms[node], left_lane=bool(rng.random() < 0.7))
        cross_all(net, node, arms[node])
    _bend(net, rng)
    light = PROTECTED if rng.random() < 0.5 else ()
    return Blueprint(net, (*light, *_radius(10)), TrafficRates(per_lane=rng.uniform(0.04, 0.07), persons=0.012))


def priority_t(rng: np.random.Generator) -> Blueprint:
    """Two side roads that give way (or stop) where they meet a main road."""
    net, gap = PlainNet(), rng.uniform(150, 220)
    stop = bool(rng.random() < 0.5)
    lanes = int(rng.integers(1, 3))
    nodes = ["t0", "t1"]
    for i, node in enumerate(nodes):
        net.node(node, (i * gap, 0), "priority_stop" if stop else "priority")
    net.node("w", (-rng.uniform(340, 400), 0))
    net.node("e", (gap + rng.uniform(340, 400), 0))
    middle = str(rng.choice(["jay", "kerb"]))
    chain = [("w", "t0", ""), ("t0", "t1", ""), ("t1", "e", middle)]
    arms: dict[str, list[Arm]] = {node: [] for node in nodes}
    for a, b, what in chain:
        for node, arm in zip((a, b), two_way(net, a, b, lanes, 13.89, what, priority=4)):
            if node in arms:
                arms[node].append(arm)
    for i, node in enumerate(nodes):
        side = (1 if i == 0 else -1) * (np.pi / 2 + np.radians(rng.uniform(-20, 20)))
        net.node(f"s{i}", net.place(node) + _polar(side, rng.uniform(320, 360)))
        arms[node].append(two_way(net, node, f"s{i}", 1, 11.11, priority=1)[0])
        join(net, arms[node], left_lane=False)
        net.crossing(node, [arms[node][-1].leaving, arms[node][-1].arriving])
    _bend(net, rng)
    return Blueprint(net, _radius(10), TrafficRates(per_lane=rng.uniform(0.07, 0.11), persons=0.014))


def all_way_stop(rng: np.random.Generator) -> Blueprint:
    """Single-lane streets where everybody stops, with crosswalks and parked cars."""
    net = PlainNet()
    net.node("c", (0, 0), "allway_stop")
    arms, middles = [], rng.permutation(["kerb", "jay", "", ""])
    for i, angle in enumerate(_around(rng, 4, 10)):
        net.node(f"f{i}", _polar(angle, rng.uniform(320, 380)))
        speed, parking = float(rng.choice([8.33, 11.11])), middles[i] == "" and bool(rng.random() < 0.6)
        arms.append(two_way(net, "c", f"f{i}", 1, speed, str(middles[i]), parking=parking)[0])
    join(net, arms)
    cross_all(net, "c", arms)
    _bend(net, rng)
    return Blueprint(net, _radius(9.5), TrafficRates(per_lane=rng.uniform(0.06, 0.1), persons=0.018))


def roundabout(rng: np.random.Generator) -> Blueprint:
    """A single-lane ring with three to five arms whose lanes part before they reach it."""
    net, count, radius = PlainNet(), int(rng.integers(3, 5)), rng.uniform(26, 34)
    angles = np.sort(_around(rng, count, 8) % (2 * np.pi))
    part = 11.0 / radius  # [rad] an exit lies this much before, an entry this much behind an arm's axis
    places = [
        (f"{what}{i}", angle + side * part) for i, angle in enumerate(angles) for what, side in (("x", -1), ("n", 1))
    ]
    for name, angle in places:
        net.node(name, _polar(angle, radius))
    ring = [f"ring-{name}" for name, _ in places]
    lone: dict[str, Any] = {"sidewalk": False, "spreadType": "center"}
    for i, (name, angle) in enumerate(places):
        following, there = places[(i + 1) % len(places)]
        span = (there - angle) % (2 * np.pi)
        arc = np.array([_polar(a, radius) for a in angle + np.linspace(0, span, max(6, int(span * radius / 2)))])
        net.edge(
            ring[i], name, following, 1, 8.33, shape=arc, sidewalk=False, priority=5, spreadType="center", width=4.2
        )
    speed = float(rng.choice([11.11, 13.89]))
    for i, angle in enumerate(angles):
        net.node(f"f{i}", _polar(angle, radius + rng.uniform(330, 400)))
        line = _flare(angle, part, radius, float(np.hypot(*net.place(f"f{i}"))))
        mirrored = _mirror(line, angle)
        for name, ends, shape in (
            (f"in{i}", (f"f{i}", f"n{i}"), line),
            (f"out{i}", (f"x{i}", f"f{i}"), mirrored[::-1]),
        ):
            net.edge(name, *ends, 1, speed, shape=shape, width=3.8, priority=1, **lone)
        before, between, after = ring[2 * i - 1], ring[2 * i], ring[2 * i + 1]
        for start, end in ((before, between), (between, after), (f"in{i}", after), (before, f"out{i}")):
            net.connect(start, end, [(0, 0)])
    net.roundabout([name for name, _ in places], ring)
    return Blueprint(net, _radius(4), TrafficRates(per_lane=rng.uniform(0.09, 0.13), persons=0.0))


def _flare(angle: float, part: float, radius: float, far: float) -> np.ndarray:
    """Centre line of a lane that comes in along an arm, swings aside and meets the ring at a slant."""
    along, aside = _polar(angle, 1.0), _polar(angle + np.pi / 2, 1.0)
    straight = [s * along + 2.1 * aside for s in np.arange(far, radius + 45, -6.0)]
    start, end = (radius + 45) * along + 2.1 * aside, _polar(angle + part, radius)
    slant = 0.88 * _polar(angle + part + np.pi / 2, 1.0) - 0.47 * _polar(angle + part, 1.0)
    handle_start, handle_end = start - 20.0 * along, end - 16.0 * slant
    t = np.linspace(0, 1, 16)[:, None]
    curve = (1 - t) ** 3 * start + 3 * t * (1 - t) ** 2 * handle_start + 3 * t**2 * (1 - t) * handle_end + t**3 * end
    return np.concatenate([straight, curve])


def _mirror(points: np.ndarray, angle: float) -> np.ndarray:
    """Points mirrored at the axis of an arm."""
    axis = _polar(angle, 1.0)
    return 2 * (points @ axis)[:, None] * axis - points


def on_ramp(rng: np.random.Generator) -> Blueprint:
    """A carriageway with a curved on-ramp, an acceleration lane, and an off-ramp further on."""
    net, lanes = PlainNet(), int(rng.integers(2, 4))
    speed = float(rng.choice([19.44, 22.22, 25.0]))
    for name, x in (("w", -520), ("a", 0), ("b", rng.uniform(180, 240)), ("d", 420), ("g", 560), ("e", 1150)):
        net.node(name, (x, 0))
    beside = -lanes * LANE_WIDTH - 0.12  # left border of the lane that a ramp becomes
    radius, turn = rng.uniform(45, 70), np.linspace(np.radians(100), 0, 20)
    ease = np.linspace(0, 1, 12)[:, None]
    arc = np.array([[-110 - radius * np.sin(t), beside - 9 - radius * (1 - np.cos(t))] for t in turn])
    away = arc[0] + 260 * np.array([-np.cos(turn[0]), -np.sin(turn[0])])
    glide = np.array([-110, beside - 9]) + np.hstack([90 * ease, 9 * ease**2 * (3 - 2 * ease)])
    net.node("r", away)
    free: dict[str, Any] = {"sidewalk": False, "priority": 9}
    net.edge("main0", "w", "a", lanes, speed, **free)
    ramp = np.concatenate([[away], arc, glide[1:], [[0, beside]]])
    net.edge("ramp", "r", "a", 1, 13.89, shape=ramp, sidewalk=False)
    net.edge("merge", "a", "b", lanes + 1, speed, **free)
    net.edge("main1", "b", "d", lanes, speed, **free)
    net.edge("split", "d", "g", lanes + 1, speed, **free)
    net.edge("main2", "g", "e", lanes, speed, **free)
    leave = np.array([560, beside]) + np.hstack([20 + 200 * ease, -60 * ease**2])
    net.node("x", leave[-1] + (240, -144))
    net.edge(
        "exit", "g", "x", 1, 16.67, shape=np.concatenate([[[560, beside]], leave, [net.place("x")]]), sidewalk=False
    )
    keep = [(i, i + 1) for i in range(lanes)]
    net.connect("main0", "merge", keep)
    net.connect("ramp", "merge", [(0, 0)])
    net.connect("merge", "main1", [(b, a) for a, b in keep])
    net.connect("main1", "split", keep)
    net.connect("split", "main2", [(b, a) for a, b in keep])
    net.connect("split", "exit", [(0, 0)])
    net.node("oe", (1150, 14))
    net.node("ow", (-520, 14))
    net.edge("opposite", "oe", "ow", lanes, speed, sidewalk=False)
    _bend(net, rng)
    return Blueprint(net, _radius(4), TrafficRates(per_lane=rng.uniform(0.16, 0.24), persons=0.0))


def lane_drop(rng: np.random.Generator) -> Blueprint:
    """A wide arterial that loses a lane behind a signalised crossing."""
    net, lanes = PlainNet(), int(rng.integers(3, 5))
    net.node("w", (-420, 0))
    net.node("c", (0, 0), "traffic_light")
    net.node("d", (rng.uniform(160, 200), 0))
    net.node("e", (650, 0))
    west, _ = two_way(net, "c", "w", lanes, 13.89, "kerb")
    net.edge("c-d", "c", "d", lanes, 13.89)
    net.edge("d-e", "d", "e", lanes - 1, 13.89)
    net.edge("e-d", "e", "d", lanes - 1, 13.89)
    net.edge("d-c", "d", "c", lanes, 13.89)
    net.connect("c-d", "d-e", [(i + 1, i) for i in range(lanes - 1)])
    net.connect("e-d", "d-c", [(i, i + 1) for i in range(lanes - 1)])
    arms = [west, Arm("d-c", "c-d", 0.0)]
    for name, angle in (("n", np.pi / 2), ("s", -np.pi / 2)):
        net.node(name, _polar(angle + np.radians(rng.uniform(-10, 10)), 340))
        arms.append(two_way(net, "c", name, int(rng.integers(1, 3)), 11.11)[0])
    join(net, arms)
    cross_all(net, "c", arms)
    _bend(net, rng)
    return Blueprint(net, (*PROTECTED, *_radius(10)), TrafficRates(per_lane=rng.uniform(0.09, 0.13), persons=0.012))


def narrow_street(rng: np.random.Generator) -> Blueprint:
    """Streets with parked cars on both sides and vans in the second row that leave just room to pass."""
    net, gap = PlainNet(), rng.uniform(160, 200)
    nodes = ["c0", "c1"]
    kind = str(rng.choice(["right_before_left", "allway_stop", "priority"]))
    for i, node in enumerate(nodes):
        net.node(node, (i * gap, 0), kind)
    net.node("w", (-rng.uniform(260, 300), 0))
    net.node("e", (gap + rng.uniform(260, 300), 0))
    arms: dict[str, list[Arm]] = {node: [] for node in nodes}
    speed, width = 8.33, float(rng.uniform(5.2, 5.6))
    for a, b in (("w", "c0"), ("c0", "c1"), ("c1", "e")):
        for node, arm in zip((a, b), two_way(net, a, b, 1, speed, parking=True, width=width, priority=3)):
            if node in arms:
                arms[node].append(arm)
    for i, node in enumerate(nodes):
        for name, side in ((f"n{i}", 1), (f"s{i}", -1)):
            direction = side * np.pi / 2 + np.radians(rng.uniform(-12, 12))
            net.node(name, net.place(node) + _polar(direction, rng.uniform(240, 280)))
            strip: dict[str, Any] = {"parking": True, "width": width} if rng.random() < 0.5 else {}
            arms[node].append(two_way(net, node, name, 1, speed, priority=1, **strip)[0])
        join(net, arms[node])
        cross_all(net, node, arms[node])
    _bend(net, rng)
    return Blueprint(net, _radius(8), TrafficRates(per_lane=rng.uniform(0.03, 0.045), persons=0.012, double_parked=0.7))
