"""Which scenarios a filter selects from a folder of logs, by the rules of the devkit.

In this order: types, tokens, logs, maps and goals; number per type (equal strides); total number; time between
scenarios of a type; what the ego does. Scenarios keep the order of the logs' names and of time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from radp.scenario import PACIFICA, Ego
from radp.sources.convert import SourceError
from radp.sources.log_files import reading
from radp.sources.nuplan.filter import ScenarioFilter
from radp.sources.nuplan.log_db import UNTAGGED, LogDb, Pick
from radp.sources.nuplan.window import drive_frames

ByType = dict[str, list[Pick]]
Value = TypeVar("Value")
NOISE = 0.1  # m/s, where a filter names no speed_noise_tolerance
SHUFFLE_SEED = 0


@dataclass(frozen=True)
class LogSelection:
    """Chosen scenarios, logs that cannot be read with the reason, and tokens of the filter that no log offers."""

    picks: list[Pick]
    broken: dict[Path, str]
    missing: tuple[str, ...]
    logs: int


def find_logs(folder: Path) -> list[Path]:
    """All .db files of a folder and the folders in it (or the one file), by name."""
    return [folder] if folder.is_file() else sorted(path for path in folder.rglob("*.db") if path.is_file())


def select(folder: Path, wanted: ScenarioFilter) -> LogSelection:
    """The scenarios of all logs in `folder` that the filter lets through."""
    broken: dict[Path, str] = {}
    offered: list[Pick] = []
    logs = [p for p in find_logs(folder) if wanted.log_names is None or p.stem in wanted.log_names]
    for path in logs:
        try:
            with LogDb(path) as log, reading(path.name, "tags"):
                offered += offers_of(log, wanted)
        except SourceError as error:
            broken[path] = str(error)
    picks = apply_rules(offered, wanted, broken)
    there = {pick.token for pick in offered}
    missing = tuple(token for token in wanted.scenario_tokens or () if token not in there)
    return LogSelection(picks, broken, missing, len(logs))


def offers_of(log: LogDb, wanted: ScenarioFilter) -> list[Pick]:
    """What one log offers of the wanted types, tokens and maps."""
    tokens = None if wanted.scenario_tokens is None else set(wanted.scenario_tokens)
    return [
        pick
        for pick in log.offers(wanted.scenario_types, wanted.remove_invalid_goals)
        if (tokens is None or pick.token in tokens) and (wanted.map_names is None or pick.map in wanted.map_names)
    ]


def apply_rules(offered: Sequence[Pick], wanted: ScenarioFilter, broken: dict[Path, str] | None = None) -> list[Pick]:
    """Offers of all logs, in their order -> those that the counts, distances and ego rules leave.

    A log that breaks while its ego is read is added to `broken`, and its scenarios are left out.
    """
    chance = random.Random(SHUFFLE_SEED) if wanted.shuffle else None
    by_type: ByType = {}
    for pick in offered:
        by_type.setdefault(pick.kind, []).append(pick)
    if wanted.num_scenarios_per_type is not None:
        by_type = {kind: thin(picks, wanted.num_scenarios_per_type, chance) for kind, picks in by_type.items()}
    if wanted.limit_total_scenarios is not None:
        by_type = limit_total(by_type, wanted.limit_total_scenarios, chance)
    if wanted.timestamp_threshold_s is not None:
        by_type = {kind: spread(picks, wanted.timestamp_threshold_s) for kind, picks in by_type.items()}
    kept = {pick for picks in by_type.values() for pick in picks}
    chosen = [pick for pick in offered if pick in kept]
    for rule in ego_rules(wanted):
        chosen = [pick for pick in chosen if _passes(pick, rule, broken if broken is not None else {})]
    return chosen


def thin(values: Sequence[Value], count: int, chance: random.Random | None = None) -> list[Value]:
    """At most `count` values: every floor(n / count)-th one, cut to `count`; drawn if there is a generator."""
    if chance is not None and count < len(values):
        return chance.sample(list(values), count)
    return list(values)[:: max(len(values) // count, 1)][:count]


def limit_total(by_type: ByType, limit: int | float, chance: random.Random | None = None) -> ByType:
    """At most `limit` scenarios (or that share) in all; untagged ones go first, then others in the order of tokens."""
    total = sum(len(picks) for picks in by_type.values())
    count = limit if isinstance(limit, int) else math.ceil(limit * total)
    if count >= total:
        return by_type
    untagged = by_type.get(UNTAGGED, [])
    if total - count < len(untagged):
        return {**by_type, UNTAGGED: thin(untagged, len(untagged) - (total - count), chance)}
    tagged = sorted((p for kind, picks in by_type.items() if kind != UNTAGGED for p in picks), key=lambda p: p.token)
    left: ByType = {}
    for pick in thin(tagged, count, chance):
        left.setdefault(pick.kind, []).append(pick)
    return left


def spread(picks: Sequence[Pick], seconds: float) -> list[Pick]:
    """By time, each at least `seconds` after the last one that was kept."""
    kept: list[Pick] = []
    following = -math.inf
    for pick in sorted(picks, key=lambda pick: pick.time_us):
        if pick.time_us * 1e-6 >= following:
            kept.append(pick)
            following = pick.time_us * 1e-6 + seconds
    return kept


EgoRule = Callable[[np.ndarray], bool]


def ego_rules(wanted: ScenarioFilter) -> list[EgoRule]:
    """Tests on the ego (N, 11) of a scenario, in order."""
    rules: list[EgoRule] = []
    noise = NOISE if wanted.speed_noise_tolerance is None else wanted.speed_noise_tolerance
    least, start, stop = (
        wanted.ego_displacement_minimum_m,
        wanted.ego_start_speed_threshold,
        wanted.ego_stop_speed_threshold,
    )
    if least is not None:
        rules.append(lambda ego: way_of_centre(ego) >= least)
    if start is not None:
        rules.append(lambda ego: passes_speed(ego, start, noise)[0])
    if stop is not None:
        rules.append(lambda ego: passes_speed(ego, stop, noise)[1])
    return rules


def way_of_centre(ego: np.ndarray) -> float:
    """Metres that the centre of the ego (N, 11) moves; the way to frame 1 is not counted."""
    heading = ego[1:, Ego.HEADING]
    ahead = PACIFICA.rear_axle_to_center * np.stack((np.cos(heading), np.sin(heading)), -1)
    centre = ego[1:, [Ego.X, Ego.Y]] + ahead
    return float(np.linalg.norm(np.diff(centre, axis=0), axis=1).sum())


def passes_speed(ego: np.ndarray, threshold: float, noise: float) -> tuple[bool, bool]:
    """Whether the speed of the ego (N, 11) rises above the threshold, and whether it falls to it, beyond noise."""
    speeds = np.hypot(ego[:, Ego.VX], ego[:, Ego.VY])
    high = low = speeds[0]
    rises = falls = False
    for speed in speeds[1:]:
        if speed > high:
            high = speed
            if high > threshold >= low and high - low > noise:
                rises, low = True, high
        if speed < low:
            low = speed
            if high > threshold >= low and high - low > noise:
                falls, high = True, low
    return rises, falls


def _passes(pick: Pick, rule: EgoRule, broken: dict[Path, str]) -> bool:
    if pick.log in broken:
        return False
    try:
        with LogDb(pick.log) as log, reading(pick.log.name, f"scenario {pick.token}"):
            return rule(drive_frames(log, pick).ego)
    except SourceError as error:
        broken[pick.log] = str(error)
        return False
