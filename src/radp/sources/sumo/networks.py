"""Generated networks: netgenerate's grid, spider and random nets, bent by one smooth warp."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from radp.sources.sumo.plain import PlainNet, sine_warp
from radp.sources.sumo.programs import run_program

COMMON = ["--sidewalks.guess", "--crossings.guess", "--walkingareas", "--no-turnarounds", "--default.lanewidth", "3.3"]


def generate_plain(rng: np.random.Generator, folder: Path, options: list[str]) -> PlainNet:
    """Run netgenerate; what it wrote as plain XML."""
    seed = ["--seed", str(int(rng.integers(1, 10**6)))]
    run_program("netgenerate", [*options, *COMMON, *seed, "-p", "raw", "-o", "raw.net.xml"], folder)
    return PlainNet.read(folder, "raw")


def grid_net(rng: np.random.Generator, folder: Path) -> PlainNet:
    """Signalised blocks with turn lanes."""
    x, y = rng.uniform(200, 260, 2)
    options = (
        f"-g --grid.x-number {rng.integers(2, 4)} --grid.y-number {rng.integers(2, 4)} --grid.x-length {x:.1f} "
        f"--grid.y-length {y:.1f} --grid.attach-length 300 -j traffic_light --turn-lanes 1 --turn-lanes.length 75 "
        f"-L 2 --random-lanenumber --default.speed {rng.choice([11.11, 13.89])}"
    ).split()
    net = generate_plain(rng, folder, options)
    net.bend(sine_warp(rng, rng.uniform(10, 18), rng.uniform(380, 480)))
    return net
