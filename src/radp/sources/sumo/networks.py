"""Generated networks: netgenerate's grid, spider and random nets, bent by one smooth warp."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from radp.sources.sumo.blueprint import Blueprint
from radp.sources.sumo.demand import TrafficRates
from radp.sources.sumo.plain import PlainNet, sine_warp
from radp.sources.sumo.programs import run_program

COMMON = ("--sidewalks.guess", "--crossings.guess", "--walkingareas", "--no-turnarounds")


def generate_plain(rng: np.random.Generator, folder: Path, options: list[str]) -> PlainNet:
    """Run netgenerate; what it wrote as plain XML."""
    seed = ["--seed", str(int(rng.integers(1, 10**6)))]
    run_program("netgenerate", [*options, *COMMON, *seed, "-p", "raw", "-o", "raw.net.xml"], folder)
    return PlainNet.read(folder, "raw")


def grid_net(rng: np.random.Generator, folder: Path) -> Blueprint:
    """Signalised blocks with turn lanes."""
    x, y = rng.uniform(200, 260, 2)
    options = (
        f"-g --grid.x-number {rng.integers(2, 4)} --grid.y-number {rng.integers(2, 4)} --grid.x-length {x:.1f} "
        f"--grid.y-length {y:.1f} --grid.attach-length 320 -j traffic_light --turn-lanes 1 --turn-lanes.length 75 "
        f"-L 2 --random-lanenumber --default.speed {rng.choice([11.11, 13.89])}"
    )
    return _finish(rng, folder, options, TrafficRates(per_lane=rng.uniform(0.04, 0.07), persons=0.009))


def spider_net(rng: np.random.Generator, folder: Path) -> Blueprint:
    """Rings and spokes: skew junctions of three and four arms, some with lights."""
    options = (
        f"-s --spider.arm-number {rng.integers(5, 7)} --spider.circle-number 2 --spider.omit-center "
        f"--spider.space-radius {rng.uniform(120, 150):.1f} --spider.attach-length 300 -L 2 "
        f"--tls.guess --tls.guess.threshold 40 --default.speed {rng.choice([11.11, 13.89])}"
    )
    return _finish(rng, folder, options, TrafficRates(per_lane=rng.uniform(0.04, 0.06), persons=0.009))


def random_net(rng: np.random.Generator, folder: Path) -> Blueprint:
    """A town without a plan: priority junctions and lights, one to three lanes."""
    options = (
        f"-r --rand.iterations {rng.integers(30, 45)} --rand.min-distance 130 --rand.max-distance 260 "
        f"--rand.min-angle 55 -L 3 --random-lanenumber --tls.guess --tls.guess.threshold 45 "
        f"--default.speed {rng.choice([11.11, 13.89])}"
    )
    return _finish(rng, folder, options, TrafficRates(per_lane=rng.uniform(0.04, 0.07), persons=0.009))


def _finish(rng: np.random.Generator, folder: Path, options: str, traffic: TrafficRates) -> Blueprint:
    net = generate_plain(rng, folder, options.split())
    net.bend(sine_warp(rng, rng.uniform(10, 18), rng.uniform(300, 480)))
    return Blueprint(net, ("--default.junctions.radius", "10"), traffic)
