"""radp data make-sumo: generate scenarios with Eclipse SUMO."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataMakeSumo:
    """Generate a split of the sumo14 benchmark; the same seed makes the same bytes.

    Example:
        radp data make-sumo --out runs/train --scenarios 3000 --networks 60
        radp data make-sumo --out runs/val --split val --per-kind 20 --networks 24
    """

    out: Path
    """New folder for the store."""
    split: str = "train"
    """Name of the split; splits of different names never share a network."""
    networks: int = 60
    """Number of road networks."""
    scenarios: int | None = None
    """Number of scenarios in all (3000 when neither this nor per-kind is given)."""
    per_kind: int | None = None
    """Number of scenarios of each of the 14 kinds."""
    seed: int = 0
    """Seed of everything."""
    workers: int = 2
    """Number of processes."""
    json: bool = False
    """Print the card as one JSON object."""

    def __call__(self) -> int:
        from radp.runs.errors import BadInput
        from radp.sources.sumo.make import generate

        scenarios = 3000 if self.scenarios is None and self.per_kind is None else self.scenarios
        try:
            card = generate(self.split, self.seed, self.networks, self.per_kind, scenarios, self.workers, self.out)
        except ImportError as error:
            raise BadInput(str(error)) from None
        if self.json:
            print(json.dumps(asdict(card), indent=1))
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
