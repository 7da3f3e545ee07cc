"""A whole split: many networks in parallel, a balanced choice among their scenarios, one store."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from pathlib import Path

import numpy as np

from radp.runs.errors import BadInput
from radp.runs.parallel import parallel_map
from radp.scenario import Ego, ObjectType, Scenario
from radp.scenario.store import ScenarioWriter
from radp.sources.sumo.harvest import Harvest, Order, harvest
from radp.sources.sumo.kinds import KINDS
from radp.sources.sumo.programs import sumo_module

CARD = "card.json"
OVERSUPPLY = 3  # networks offer this many times what is wanted of a kind: not every network has every kind
ROUNDS = 4  # more networks are made while a kind is short
SECONDS = (200.0, 600.0)  # shortest and longest run of a network
SECONDS_PER_SCENARIO = 4.0


@dataclass
class Card:
    """What a split holds, in numbers."""

    split: str
    seed: int
    networks: dict[str, int] = field(default_factory=dict)  # name -> scenarios
    kinds: dict[str, int] = field(default_factory=dict)
    hazards: dict[str, int] = field(default_factory=dict)  # kind of hazard -> scenarios
    with_hazard: int = 0
    scenarios: int = 0
    road_users: dict[str, float] = field(default_factory=dict)  # type -> mean number per scenario
    speed: dict[str, float] = field(default_factory=dict)  # [m/s] of the ego over all frames
    travelled: dict[str, float] = field(default_factory=dict)  # [m] in 15 s
    refused: dict[str, int] = field(default_factory=dict)  # written rule -> windows thrown out
    failed: dict[str, str] = field(default_factory=dict)  # network -> reason
    short: dict[str, int] = field(default_factory=dict)  # kind -> missing scenarios


def generate(
    split: str,
    seed: int,
    networks: int,
    per_kind: int | None = None,
    scenarios: int | None = None,
    workers: int = 1,
    out: Path = Path("sumo14"),
) -> Card:
    """Make a split and write it to the store `out`; the same arguments make the same bytes, whatever the workers.

    per_kind: that many scenarios of each kind. scenarios: that many in all, balanced over kinds as the networks allow.
    Every network is a piece of its own, seeded by (seed, split, index): networks of different splits never coincide.
    """
    if (per_kind is None) == (scenarios is None):
        raise BadInput("give either per-kind or scenarios")
    if (out / "manifest.json").exists():
        raise BadInput(f"{out} holds a store already")
    sumo_module("sumo")
    card, harvests = Card(split, seed), []
    order = _order(split, seed, networks, per_kind, scenarios)
    asked = 0
    for _ in range(ROUNDS):
        batch = networks if asked == 0 else max(1, networks // 4)
        orders = [Order(**{**asdict(order), "index": asked + i}) for i in range(batch)]
        asked += batch
        outcome = parallel_map(harvest, orders, workers=workers, name=lambda o: o.name, label="networks")
        card.failed |= {failure.piece: failure.reason for failure in outcome.failures}
        harvests += list(outcome.results.values())
        chosen = pick(harvests, per_kind, scenarios)
        card.short = _shortage(chosen, per_kind, scenarios)
        if not card.short:
            break
    with ScenarioWriter(out) as writer:
        for scenario in chosen:
            writer.add(scenario)
    _describe(card, chosen, harvests)
    (out / CARD).write_text(json.dumps(asdict(card), indent=1) + "\n")
    return card


def _order(split: str, seed: int, networks: int, per_kind: int | None, scenarios: int | None) -> Order:
    """What each network is asked for."""
    if per_kind is not None:
        return Order(split, 0, seed, SECONDS[0], max(2, ceil(OVERSUPPLY * per_kind / networks)))
    total = ceil((scenarios or 0) / networks)
    seconds = float(np.clip(SECONDS_PER_SCENARIO * total, *SECONDS))
    return Order(split, 0, seed, seconds, max(2, ceil(2 * total / len(KINDS))), total, reuse_egos=True)


def pick(harvests: Sequence[Harvest], per_kind: int | None, scenarios: int | None) -> list[Scenario]:
    """Of each kind one scenario per network in turn, until enough; in total mode all of them, up to the total."""
    chosen: list[Scenario] = []
    if per_kind is None:
        rounds = zip_longest_rows([list(h.scenarios) for h in harvests])
        keep = {s.token for _, s in zip(range(scenarios or 0), rounds)}
        return [s for h in harvests for s in h.scenarios if s.token in keep]
    for k, kind in enumerate(KINDS):
        rows = [[s for s in h.scenarios if s.kind == kind] for h in harvests]
        turned = rows[k % len(rows) :] + rows[: k % len(rows)]  # so that not every kind begins at the same network
        chosen += [s for _, s in zip(range(per_kind), zip_longest_rows(turned))]
    return chosen


def zip_longest_rows(rows: Sequence[list[Scenario]]) -> Iterable[Scenario]:
    """First of every row, then second of every row, ..."""
    for depth in range(max((len(row) for row in rows), default=0)):
        yield from (row[depth] for row in rows if len(row) > depth)


def _shortage(chosen: Sequence[Scenario], per_kind: int | None, scenarios: int | None) -> dict[str, int]:
    if per_kind is None:
        return {"all": (scenarios or 0) - len(chosen)} if len(chosen) < (scenarios or 0) else {}
    count = Counter(s.kind for s in chosen)
    return {kind: per_kind - count[kind] for kind in KINDS if count[kind] < per_kind}


def _describe(card: Card, chosen: Sequence[Scenario], harvests: Sequence[Harvest]) -> None:
    """Fill the card from what was chosen."""
    card.scenarios = len(chosen)
    card.networks = dict(sorted(Counter(s.tags["network"] for s in chosen).items()))
    card.kinds = {kind: sum(s.kind == kind for s in chosen) for kind in KINDS}
    card.hazards = dict(sorted(Counter(h for s in chosen for h in s.tags.get("hazard", "").split(",") if h).items()))
    card.with_hazard = sum("hazard" in s.tags for s in chosen)
    users = {t.name.lower(): [int((s.tracks.type == t).sum()) for s in chosen] for t in ObjectType}
    card.road_users = {name: round(float(np.mean(counts)), 1) for name, counts in users.items() if any(counts)}
    card.speed = _spread(np.concatenate([s.ego[s.start :, Ego.VX] for s in chosen])) if chosen else {}
    paths = [np.hypot(*np.diff(s.ego[s.start :, :2], axis=0).T).sum() for s in chosen]
    card.travelled = _spread(np.array(paths)) if chosen else {}
    refused: dict[str, int] = defaultdict(int)
    for row in harvests:
        for reason, count in row.defects.items():
            refused[reason] += count
    card.refused = dict(sorted(refused.items()))


def _spread(values: np.ndarray) -> dict[str, float]:
    shares = {f"p{share}": np.percentile(values, share) for share in (5, 50, 95)}
    return {name: round(float(value), 2) for name, value in {"mean": values.mean(), **shares}.items()}
