"""A hard split, made as test14-hard was: drive many scenarios, keep those that went worst."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from radp.evaluation.closed_loop import Run
from radp.metrics.card import read_cards
from radp.runs.errors import BadInput
from radp.scenario.splits import Split
from radp.scenario.store import ScenarioWriter
from radp.sources.sumo.card import Card, Tally


def hardest_tokens(run: Run, per_kind: int) -> list[str]:
    """Tokens of the `per_kind` lowest scores of each kind, in the order of the run."""
    rows = ((card["token"], card["kind"], card["score"]) for card in read_cards(run.folder.path))
    return lowest((row for row in rows if row[2] is not None), per_kind)


def lowest(rows: Iterable[tuple[str, str, float]], per_kind: int) -> list[str]:
    """(token, kind, score) -> tokens of the lowest scores of each kind, in the given order; ties go by token."""
    kinds: Mapping[str, list[tuple[float, str]]] = defaultdict(list)
    order = []
    for token, kind, score in rows:
        kinds[kind].append((score, token))
        order.append(token)
    kept = {token for group in kinds.values() for _, token in sorted(group)[:per_kind]}
    return [token for token in order if token in kept]


def write_selection(split: Split, tokens: Iterable[str], out: Path) -> Card:
    """Copy scenarios to a new store, with its card."""
    if (out / "manifest.json").exists():
        raise BadInput(f"{out} holds a store already")
    wanted, tally = set(tokens), Tally()
    with ScenarioWriter(out) as writer:
        for i, token in enumerate(split.tokens()):
            if token in wanted:
                scenario = split[i]
                writer.add(scenario)
                tally.add(scenario)
    card = tally.card(out.name, {})
    card.write(out)
    return card
