"""radp data convert: logs of another format become a scenario store."""

from __future__ import annotations

import json as json_module
from functools import partial
from pathlib import Path


def convert(
    source: str,
    out: Path,
    data: Path | None = None,
    ego: str = "sdc",
    db: Path | None = None,
    maps: Path | None = None,
    filter: Path | None = None,
    limit: int | None = None,
    workers: int = 1,
    json: bool = False,
) -> int:
    """Turn logs of another format into a scenario store. The same command takes up a conversion that was killed.

    Example:
        radp data convert --source waymo-json --data path/to/json --out runs/waymo
        radp data convert --source waymo-json --data path/to/json --ego all --out runs/waymo-all --workers 2
        radp data convert --source nuplan --db nuplan/val --maps nuplan/maps --filter val14.yaml --out runs/val14

    Args:
        source: nuplan, waymo-json, waymo-proto, scenarionet, argoverse or commonroad.
        out: Folder for the store.
        data: A log, or a folder that is searched for logs.
        ego: Who drives: sdc (the recording car), all (every vehicle with a full track), or the id of a track.
        db: nuPlan: folder of the .db files.
        maps: nuPlan: folder of the maps.
        filter: nuPlan: YAML file of a scenario filter.
        limit: Convert at most so many logs.
        workers: Number of processes.
        json: Print the card as one JSON object.
    """
    from radp.scenario.egos import choose_egos
    from radp.sources.convert import Options, load_source
    from radp.sources.convert import convert as convert_all

    options = Options(data, ego, db, maps, filter, limit)
    card = convert_all(load_source(source), options, out, workers, partial(choose_egos, ego=ego))
    if json:
        print(json_module.dumps(card, indent=1))
    else:
        print(f"{out}: {card['scenarios']} scenarios on {card['maps']} maps from {card['logs']} logs")
        for name in ("rebuilt", "unknown"):
            if card[name]:
                print(f"{name}: " + ", ".join(f"{word} {count}" for word, count in card[name].items()))
        for name, reason in card["failed"].items():
            print(f"failed: {name}: {reason}")
    return 1 if card["failed"] else 0
