"""radp data convert: logs of another format become a scenario store."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from radp.runs.engine import Engine
from radp.runs.json_text import json_text
from radp.sources.settings import LogChoice


@dataclass(frozen=True)
class DataConvert:
    """Turn logs of another format into a scenario store.

    The same command takes up a conversion that was killed.

    Example:
        radp data convert --source waymo-json --data path/to/json --out runs/waymo
        radp data convert --source waymo-json --data path/to/json --ego all --out runs/waymo-all --workers 2
        radp data convert --source nuplan --db nuplan/val --maps nuplan/maps --filter val14.yaml --out runs/val14
        radp data convert --source nuplan-log --data exp/simulation_log --maps nuplan/maps --out runs/their-drives
    """

    source: str
    """nuplan, nuplan-log (SimulationLog files of nuplan-devkit), nuplan-sample (.npz of DTPP), waymo-json, waymo-proto,
    scenarionet, argoverse or commonroad."""
    out: Path
    """Folder for the store."""
    workers: int = 1
    """Number of processes."""
    where: Engine = field(default_factory=Engine)
    json: bool = False
    """Print the card as one JSON object."""
    logs: LogChoice = field(default_factory=LogChoice)

    def __call__(self) -> int:
        from radp.runs.errors import printable
        from radp.scenario.egos import choose_egos
        from radp.sources.convert import convert, load_source

        finish = partial(choose_egos, ego=self.logs.ego)
        card = convert(load_source(self.source), self.logs, self.out, self.workers, finish)
        if self.json:
            print(json_text(card))
        else:
            print(f"{self.out}: {card['scenarios']} scenarios on {card['maps']} maps from {card['logs']} logs")
            for name in ("rebuilt", "unknown"):
                if card[name]:
                    print(f"{name}: " + ", ".join(f"{word} {count}" for word, count in card[name].items()))
            for what in ("failed", "empty"):
                for name, reason in card.get(what, {}).items():
                    print(printable(f"{what}: {name}: {reason}").replace("\n", " "))
        if not card["scenarios"]:
            print(f"radp: no scenario came out of {card['logs']} logs", file=sys.stderr)
        return 0 if card["scenarios"] and not card["failed"] else 1
