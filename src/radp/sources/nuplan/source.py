"""nuPlan as a source of `radp data convert`: one item per log, with the scenarios that the filter chose from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from radp.runs.errors import BadInput, require
from radp.scenario import Scenario
from radp.sources.convert import Refused, SourceError
from radp.sources.log_files import reading
from radp.sources.nuplan.filter import ScenarioFilter, read_filter
from radp.sources.nuplan.log_db import LogDb, Pick
from radp.sources.nuplan.scenario import read_scenario
from radp.sources.nuplan.select import LogSelection, find_logs, select
from radp.sources.settings import LogChoice

DEFAULT_FILTER = ScenarioFilter(scenario_types=(
    "starting_left_turn", "starting_right_turn", "starting_straight_traffic_light_intersection_traversal",
    "stopping_with_lead", "high_lateral_acceleration", "high_magnitude_speed", "low_magnitude_speed",
    "traversing_pickup_dropoff", "waiting_for_pedestrian_to_cross", "behind_long_vehicle", "stationary_in_traffic",
    "near_multiple_vehicles", "changing_lane", "following_lane_with_lead",
), remove_invalid_goals=True)  # fmt: skip


@dataclass(frozen=True)
class LogItem:
    """A log and what is to be taken from it; `fault` says why nothing can be."""

    name: str
    path: Path
    maps: Path
    picks: tuple[Pick, ...] = ()
    fault: str = ""


class NuPlan:
    """Logs (.db) under `db`, maps under `maps`; without a filter file all scenarios of the 14 types."""

    name = "nuplan"

    def items(self, options: LogChoice) -> list[LogItem]:
        db, maps = options.db or options.data, options.maps
        if db is None or maps is None:
            raise BadInput("nuplan needs --db (folder of the .db files) and --maps (folder of the maps)")
        for folder in (db, maps):
            if not folder.exists():
                raise BadInput(f"{folder} does not exist")
        if not find_logs(db):
            raise BadInput(f"{db} holds no .db files")
        require("pyproj", "nuplan")  # said once, not in every row of the ledger
        wanted = read_filter(options.filter) if options.filter is not None else DEFAULT_FILTER
        return items_of(select(db, wanted), db, maps, options.filter)

    def scenarios(self, item: LogItem) -> Iterator[Scenario | Refused]:
        if item.fault:
            raise SourceError(item.fault)
        with LogDb(item.path) as log:
            for pick in item.picks:
                try:
                    with reading(item.path.name, f"scenario {pick.token}"):
                        scenario = read_scenario(log, pick, item.maps)
                    yield scenario
                except SourceError as error:
                    yield Refused(pick.token, str(error))


def items_of(chosen: LogSelection, db: Path, maps: Path, source: Path | None = None) -> list[LogItem]:
    """Logs with scenarios in the order of their names, then those that are broken, then what the filter misses."""
    picks: dict[Path, list[Pick]] = {}
    for pick in chosen.picks:
        picks.setdefault(pick.log, []).append(pick)
    root = db if db.is_dir() else db.parent
    names = {path: path.relative_to(root).with_suffix("").as_posix() for path in (*picks, *chosen.broken)}
    items = [LogItem(names[p], p, maps, tuple(some)) for p, some in picks.items() if p not in chosen.broken]
    items += [LogItem(names[p], p, maps, fault=why) for p, why in chosen.broken.items()]
    if not items and not chosen.missing:
        what = f"the filter {source}" if source else "the 14 types of the benchmarks"
        raise BadInput(f"{db}: none of its {chosen.logs} logs offers a scenario of {what}")
    if chosen.missing:
        count = f"{len(chosen.missing)} of its scenarios are in none of the {chosen.logs} logs"
        fault = f"{source}: {count} (the first is {chosen.missing[0]})"
        items.append(LogItem(f"filter {source.name if source else ''}", db, maps, fault=fault))
    return items


NUPLAN = NuPlan()
