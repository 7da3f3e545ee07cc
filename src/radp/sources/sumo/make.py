"""A whole split: many networks in parallel, a balanced choice among their scenarios, one store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil
from pathlib import Path

import numpy as np

from radp.runs.claim import claimed
from radp.runs.errors import BadInput
from radp.runs.parallel import parallel_map
from radp.scenario import Scenario
from radp.scenario.store import ScenarioWriter
from radp.sources.settings import SumoSplit
from radp.sources.sumo.card import Card, Tally
from radp.sources.sumo.harvest import Harvest, Order, harvest
from radp.sources.sumo.kinds import KINDS
from radp.sources.sumo.programs import sumo_module
from radp.storage.shelf import Shelf

OVERSUPPLY = 3  # networks offer this many times what is wanted of a kind: not every network has every kind
ROUNDS = 5  # more networks are made while scenarios are missing, a quarter as many each time
SECONDS = (200.0, 600.0)  # shortest and longest run of a network
SECONDS_PER_SCENARIO = 4.0


def generate(wanted: SumoSplit, out: Path, workers: int = 1) -> Card:
    """Make a split and write it to the store `out`; the same wish makes the same bytes, whatever the workers.

    per_kind: that many scenarios of each kind. scenarios: that many in all, balanced over kinds as the networks allow.
    Every network is a piece of its own, seeded by (seed, split, index): networks of different splits never coincide.
    """
    if (wanted.per_kind is None) == (wanted.scenarios is None):
        raise BadInput("give either per-kind or scenarios")
    for name in ("networks", "per_kind", "scenarios"):
        value = getattr(wanted, name)
        if value is not None and value < 1:
            raise BadInput(f"{name.replace('_', '-')} is {value}, expected at least 1")
    if (out / "manifest.json").exists():
        raise BadInput(f"{out} holds a store already")
    sumo_module("libsumo")
    split, seed, networks = wanted.split, wanted.seed, wanted.networks
    with claimed(out):
        if wanted.per_kind is not None:
            return _balanced(split, seed, networks, wanted.per_kind, workers, out)
        return _many(split, seed, networks, wanted.scenarios or 0, workers, out)


def _rounds(first: Order, networks: int) -> Iterator[list[Order]]:
    """Orders of the networks asked for, then of more as long as something is missing."""
    asked = 0
    for batch in (networks, *[max(1, networks // 4)] * (ROUNDS - 1)):
        yield [replace(first, index=asked + i) for i in range(batch)]
        asked += batch


def _balanced(split: str, seed: int, networks: int, per_kind: int, workers: int, out: Path) -> Card:
    """Keep what all networks offer, then choose."""
    tally, harvests, short = Tally(), [], dict.fromkeys(KINDS, per_kind)
    order = Order(split, 0, seed, SECONDS[0], max(2, ceil(OVERSUPPLY * per_kind / networks)))
    for orders in _rounds(order, networks):
        outcome = parallel_map(harvest, orders, workers=workers, name=lambda o: o.name, label="networks", folder=out)
        tally.failed |= {failure.piece: failure.reason for failure in outcome.failures}
        harvests += list(outcome.results.values())
        chosen = pick(harvests, per_kind)
        count = Counter(s.kind for s in chosen)
        short = {kind: per_kind - count[kind] for kind in KINDS if count[kind] < per_kind}
        if not short:
            break
    with ScenarioWriter(out) as writer:
        for scenario in chosen:
            writer.add(scenario)
            tally.add(scenario)
    for row in harvests:
        tally.refused.update(row.defects)
    card = tally.card(split, short)
    card.write(out)
    return card


def pick(harvests: Sequence[Harvest], per_kind: int) -> list[Scenario]:
    """Of each kind the first scenario of every network, then the second of every network, ..., until enough."""
    chosen: list[Scenario] = []
    for k, kind in enumerate(KINDS):
        rows = [[s for s in h.scenarios if s.kind == kind] for h in harvests]
        turned = rows[k % len(rows) :] + rows[: k % len(rows)]  # so that not every kind begins at the same network
        chosen += islice(_in_turn(turned), per_kind)
    return chosen


def _in_turn(rows: Sequence[list[Scenario]]) -> Iterator[Scenario]:
    for depth in range(max((len(row) for row in rows), default=0)):
        yield from (row[depth] for row in rows if len(row) > depth)


def _many(split: str, seed: int, networks: int, scenarios: int, workers: int, out: Path) -> Card:
    """Write each network's scenarios when its turn comes; networks that are early wait."""
    tally, total = Tally(), ceil(scenarios / networks)
    seconds = float(np.clip(SECONDS_PER_SCENARIO * total, *SECONDS))
    order = Order(split, 0, seed, seconds, max(2, ceil(2 * total / len(KINDS))), total, reuse_egos=True)
    with ScenarioWriter(out) as writer:
        for orders in _rounds(order, networks):
            shelf = Shelf[Harvest](lambda _, result: _write(result, writer, tally, scenarios))
            outcome = parallel_map(harvest, orders, workers=workers, on_result=shelf.put, on_failure=shelf.lose,
                                   name=lambda o: o.name, label="networks", folder=out)  # fmt: skip
            tally.failed |= {failure.piece: failure.reason for failure in outcome.failures}
            if len(writer) >= scenarios:
                break
        missing = scenarios - len(writer)
    card = tally.card(split, {"all": missing} if missing > 0 else {})
    card.write(out)
    return card


def _write(result: Harvest, writer: ScenarioWriter, tally: Tally, most: int) -> None:
    for scenario in result.scenarios:
        if len(writer) < most:
            writer.add(scenario)
            tally.add(scenario)
    tally.refused.update(result.defects)
