from __future__ import annotations

import dataclasses

import numpy as np

from radp.sources.sumo.harvest import Harvest, Order
from radp.sources.sumo.kinds import KINDS
from radp.sources.sumo.make import pick
from tests.small_scenarios import small_scenario


def harvest_of(network: int, kinds: dict[str, int]) -> Harvest:
    base = small_scenario()
    rows = [
        dataclasses.replace(base, token=f"{network}-{kind}-{i}", kind=kind)
        for kind, count in kinds.items()
        for i in range(count)
    ]
    return Harvest(f"net{network}", tuple(rows), {})


def test_pick_takes_networks_in_turn() -> None:
    everything = dict.fromkeys(KINDS, 5)
    chosen = pick([harvest_of(n, everything) for n in range(4)], per_kind=6)
    assert len(chosen) == 6 * len(KINDS)
    for kind in KINDS:
        networks = [s.token.split("-")[0] for s in chosen if s.kind == kind]
        assert sorted(np.unique(networks, return_counts=True)[1]) == [1, 1, 2, 2]


def test_pick_uses_what_there_is() -> None:
    harvests = [harvest_of(0, {KINDS[0]: 9}), harvest_of(1, {KINDS[0]: 1, KINDS[3]: 2})]
    chosen = pick(harvests, per_kind=4)
    assert [s.kind for s in chosen] == [KINDS[0]] * 4 + [KINDS[3]] * 2


def test_orders_of_different_splits_differ() -> None:
    assert Order("val", 0, 0).name != Order("random", 0, 0).name
    assert Order("val", 0, 0).kind == Order("val", 12, 0).kind != Order("val", 1, 0).kind
