"""The kinds of networks, and one network built from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

import numpy as np

from radp.sources.sumo import junctions, networks
from radp.sources.sumo.blueprint import Blueprint
from radp.sources.sumo.demand import TrafficRates
from radp.sources.sumo.programs import SumoError
from radp.sources.sumo.road import SumoRoad, read_road
from radp.sources.sumo.soundness import broken_connectors, unsound

REPAIRS = 3
ATTEMPTS = 12  # a network that breaks a rule is drawn again


def _hand_made(builder: Callable[[np.random.Generator], Blueprint]) -> Callable[[np.random.Generator, Path], Blueprint]:
    return lambda rng, folder: builder(rng)


CATALOGUE: dict[str, Callable[[np.random.Generator, Path], Blueprint]] = {
    "grid": networks.grid_net,
    "four_way_protected": _hand_made(partial(junctions.four_way, protected=True)),
    "lane_drop": _hand_made(junctions.lane_drop),
    "priority_t": _hand_made(junctions.priority_t),
    "spider": networks.spider_net,
    "on_ramp": _hand_made(junctions.on_ramp),
    "four_way_permissive": _hand_made(partial(junctions.four_way, protected=False)),
    "narrow_street": _hand_made(junctions.narrow_street),
    "random": networks.random_net,
    "roundabout": _hand_made(junctions.roundabout),
    "corridor": _hand_made(junctions.corridor),
    "all_way_stop": _hand_made(junctions.all_way_stop),
}


@dataclass(frozen=True)
class Network:
    """A built network: its file, its map, its traffic."""

    kind: str
    file: Path
    road: SumoRoad
    traffic: TrafficRates


def generator_for(*path: object) -> np.random.Generator:
    """A generator that belongs to a path of names, such as seed, split, index and purpose."""
    digest = blake2b("/".join(map(str, path)).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


def build_network(kind: str, name: str, folder: Path, *path: object) -> Network:
    """Draw a network of a kind until one is sound; `path` seeds it."""
    reason = ""
    for attempt in range(ATTEMPTS):
        try:
            blueprint = CATALOGUE[kind](generator_for(*path, kind, "network", attempt), folder)
            file, road = _build(blueprint, name, folder)
            reason = unsound(road)
        except SumoError as error:
            reason = str(error)
        if not reason:
            return Network(kind, file, road, blueprint.traffic)
    raise SumoError(f"no sound {kind} network in {ATTEMPTS} attempts: {reason}")


def _build(blueprint: Blueprint, name: str, folder: Path) -> tuple[Path, SumoRoad]:
    """Build; turns that no car could follow are forbidden, and the network built again."""
    for _ in range(REPAIRS):
        file = blueprint.net.build(folder, "network", blueprint.options)
        road = read_road(file, name)
        broken = broken_connectors(road)
        if not broken:
            break
        for connector in (road.connector(i) for i in broken):
            if connector is not None:
                blueprint.net.forbid(connector.source, connector.target)
    return file, road
