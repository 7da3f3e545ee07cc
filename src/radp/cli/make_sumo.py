"""radp data make-sumo: generate scenarios with Eclipse SUMO."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from radp.runs.engine import Engine
from radp.runs.json_text import json_text
from radp.sources.settings import SumoSplit


@dataclass(frozen=True)
class DataMakeSumo:
    """Generate a split of the sumo14 benchmark; the same seed makes the same bytes.

    Example:
        radp data make-sumo --out runs/train --scenarios 3000 --networks 60
        radp data make-sumo --out runs/val --split val --per-kind 20 --networks 24
    """

    out: Path
    """New folder for the store."""
    workers: int = 2
    """Number of processes."""
    where: Engine = field(default_factory=Engine)
    json: bool = False
    """Print the card as one JSON object."""
    wanted: SumoSplit = field(default_factory=SumoSplit)

    def __call__(self) -> int:
        from radp.runs.errors import BadInput
        from radp.sources.sumo.make import generate

        some = self.wanted.scenarios is not None or self.wanted.per_kind is not None
        try:
            card = generate(self.wanted if some else replace(self.wanted, scenarios=3000), self.out, self.workers)
        except ImportError as error:
            raise BadInput(str(error)) from None
        if self.json:
            print(json_text(asdict(card)))
            return 0
        made = f"{card.scenarios} scenarios from {len(card.networks)} networks, {card.with_hazard} with a hazard"
        print(f"{self.out}: {made}")
        for kind, count in card.kinds.items():
            print(f"  {kind}: {count}")
        for name, reason in card.failed.items():
            print(f"network {name} failed: {reason}")
        for kind, missing in card.short.items():
            print(f"short of {kind}: {missing}")
        return 1 if card.short else 0
