"""radp data make-sumo: generate scenarios with Eclipse SUMO."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from pathlib import Path


def make_sumo(
    out: Path,
    split: str = "train",
    networks: int = 60,
    scenarios: int | None = None,
    per_kind: int | None = None,
    seed: int = 0,
    workers: int = 2,
    json: bool = False,
) -> int:
    """Generate a split of the sumo14 benchmark; the same seed makes the same bytes.

    Example:
        radp data make-sumo --out runs/train --scenarios 3000 --networks 60
        radp data make-sumo --out runs/val --split val --per-kind 20 --networks 24

    Args:
        out: New folder for the store.
        split: Name of the split; splits of different names never share a network.
        networks: Number of road networks.
        scenarios: Number of scenarios in all (3000 when neither this nor per-kind is given).
        per_kind: Number of scenarios of each of the 14 kinds.
        seed: Seed of everything.
        workers: Number of processes.
        json: Print the card as one JSON object.
    """
    from radp.runs.errors import BadInput
    from radp.sources.sumo.make import generate

    if scenarios is None and per_kind is None:
        scenarios = 3000
    try:
        card = generate(split, seed, networks, per_kind, scenarios, workers, out)
    except ImportError as error:
        raise BadInput(str(error)) from None
    if json:
        print(json_module.dumps(asdict(card), indent=1))
        return 0
    print(f"{out}: {card.scenarios} scenarios from {len(card.networks)} networks, {card.with_hazard} with a hazard")
    for kind, count in card.kinds.items():
        print(f"  {kind}: {count}")
    for name, reason in card.failed.items():
        print(f"network {name} failed: {reason}")
    for kind, missing in card.short.items():
        print(f"short of {kind}: {missing}")
    return 1 if card.short else 0
