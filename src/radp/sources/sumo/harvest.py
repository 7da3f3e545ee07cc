"""One network from its seed to its scenarios: build, run, smooth, tag, choose. Independent of every other network."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from radp.scenario import Scenario
from radp.sources.sumo.candidates import Candidate, EgoLog, ego_logs, find_candidates
from radp.sources.sumo.catalogue import CATALOGUE, Network, build_network, generator_for
from radp.sources.sumo.demand import write_demand
from radp.sources.sumo.hazards import HazardDirector
from radp.sources.sumo.kinds import KINDS
from radp.sources.sumo.passing import Passing
from radp.sources.sumo.recording import record
from radp.sources.sumo.road import SumoRoad
from radp.sources.sumo.traffic_log import TrafficLog, traffic_log
from radp.sources.sumo.windows import Window, cut, defect, make_scenario

SOURCE = "sumo14"
WARM_UP = 300  # frames before the first drive: the network fills up
APART = 150  # frames between two drives of one ego
HAZARD_BIAS = 0.25  # windows with a hazard come this much earlier in the queue of their kind


@dataclass(frozen=True)
class Order:
    """What is wanted of one network: at most `per_kind` scenarios of each kind, `total` in all; one drive per ego
    unless `reuse_egos`."""

    split: str
    index: int
    seed: int
    seconds: float = 200.0
    per_kind: int = 4
    total: int | None = None
    reuse_egos: bool = False

    @property
    def kind(self) -> str:
        return list(CATALOGUE)[self.index % len(CATALOGUE)]

    @property
    def name(self) -> str:
        return f"{SOURCE}-{self.split}-{self.index:03d}-{self.kind}"


@dataclass(frozen=True)
class Harvest:
    """The scenarios of one network, and why other windows were not taken."""

    name: str
    scenarios: tuple[Scenario, ...]
    defects: dict[str, int]


def harvest(order: Order) -> Harvest:
    """Make one network's scenarios; the same order gives the same bytes."""
    path = (order.seed, order.split, order.index)
    with TemporaryDirectory() as place:
        folder = Path(place)
        network = build_network(order.kind, order.name, folder, *path)
        log = _run(network, order, folder)
    egos = ego_logs(log)
    candidates = find_candidates(log, network.road, egos, generator_for(*path, "tags"))
    windows, defects = choose(candidates, egos, log, network.road, order)
    scenarios = tuple(make_scenario(window, log, network.road, SOURCE) for window in windows)
    return Harvest(order.name, scenarios, dict(defects))


def _run(network: Network, order: Order, folder: Path) -> TrafficLog:
    path = (order.seed, order.split, order.index)
    road = network.road
    demand = write_demand(road, network.traffic, order.seconds, generator_for(*path, "demand"), folder)
    seed = int(generator_for(*path, "sumo").integers(1, 2**31 - 1))
    directors = (HazardDirector(road, generator_for(*path, "hazards")), Passing(road))
    recording = record(network.file, demand.file, road, order.seconds, seed, directors)
    return traffic_log(recording, demand, road, generator_for(*path, "parked"))


def choose(
    candidates: list[Candidate], egos: dict[int, EgoLog], log: TrafficLog, road: SumoRoad, order: Order
) -> tuple[list[Window], Counter[str]]:
    """Pick windows kind by kind, the rarest kind first, one of each kind per round, until enough or none is left."""
    rng = generator_for(order.seed, order.split, order.index, "choice")
    queues = _queues([c for c in candidates if c.start >= WARM_UP], egos, log, rng)
    used: dict[int, list[int]] = {}
    taken: list[Window] = []
    count: Counter[str] = Counter()
    defects: Counter[str] = Counter()
    wanted = order.total or order.per_kind * len(KINDS)
    while queues and len(taken) < wanted:
        for kind in sorted(queues, key=lambda k: (len(queues[k]), k)):
            window = _next_window(queues[kind], used, egos, log, road, order, defects)
            if window is None or count[kind] + 1 >= order.per_kind:
                del queues[kind]
            if window is not None and len(taken) < wanted:
                taken.append(window)
                count[kind] += 1
                used.setdefault(window.candidate.ego, []).append(window.candidate.start)
    taken.sort(key=lambda w: (KINDS.index(w.candidate.kind), w.frames.start, w.candidate.ego))
    return taken, defects


def _queues(
    candidates: list[Candidate], egos: dict[int, EgoLog], log: TrafficLog, rng: np.random.Generator
) -> dict[str, list[Window]]:
    """Windows of each kind in random order, the next one last; those with a hazard come early more often."""
    queues: dict[str, list[tuple[float, Window]]] = {}
    for candidate in candidates:
        window = cut(candidate, egos[candidate.ego], log)
        late = rng.random() * (HAZARD_BIAS if window.hazards else 1.0)
        queues.setdefault(candidate.kind, []).append((late, window))
    return {kind: [w for _, w in sorted(rows, key=lambda row: -row[0])] for kind, rows in queues.items()}


def _next_window(
    queue: list[Window], used: dict[int, list[int]], egos: dict[int, EgoLog], log: TrafficLog, road: SumoRoad,
    order: Order, defects: Counter[str],
) -> Window | None:  # fmt: skip
    """The next window without a defect whose ego is free; None when the queue is empty."""
    while queue:
        window = queue.pop()
        starts = used.get(window.candidate.ego, [])
        if starts and not (order.reuse_egos and all(abs(s - window.candidate.start) >= APART for s in starts)):
            continue
        reason = defect(window, log, road)
        if not reason:
            return window
        defects[reason] += 1
    return None
