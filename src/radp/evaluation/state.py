"""What a folder of results holds: what is done, failed and missing, who is at work on it, and how long it took."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from radp.attribution.cache import CACHE, FILES, PART
from radp.evaluation.closed_loop import COMMAND, Run
from radp.metrics.card import CARDS, read_cards
from radp.runs.claim import BOOKS, driver_of
from radp.runs.errors import BadInput
from radp.runs.folder import RUN, RunFolder
from radp.runs.journal import maps_of
from radp.runs.ledger import Ledger
from radp.scene.log_samples import LOGS
from radp.storage.shards import ShardFiles

DEEPEST = 3  # folders of folders that are looked into
NAMED = 20  # missing pieces in JSON


def states_below(folder: Path) -> list[dict[str, Any]]:
    """The state of the folder or, if it holds none, of those in it; BadInput if there is nothing."""
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder")
    found = [place for place in _folders(folder, DEEPEST) if (place / BOOKS).is_dir() or RUN.describes(place)]
    if not found:
        raise BadInput(f"{folder} holds no run, and no folder in it does")
    return [state_of(place) for place in found]


def _folders(folder: Path, depth: int) -> list[Path]:
    below = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")) if depth else []
    return [folder, *(place for child in below for place in _folders(child, depth - 1))]


def state_of(folder: Path) -> dict[str, Any]:
    """One folder, ready for JSON. The files themselves are asked, where there is one for each piece."""
    maps, driver = maps_of(folder), driver_of(folder)
    command = RunFolder.open(folder).config["command"] if RUN.describes(folder) else None
    if command == COMMAND:
        counts = _drives(folder)
    elif CACHE.is_in(folder) or LOGS.describes(folder):
        counts = _shards(folder)
    else:
        counts = _journalled(folder, maps)
    who = None if driver is None else {name: driver.get(name) for name in ("host", "process")}
    return {"folder": str(folder), "command": command, **counts, "driver": who, "maps": maps}


def _counts(of: str, total: int, failed: dict[str, str], missing: Sequence[str], absent: int) -> dict[str, Any]:
    """`absent`: how many are missing, of which some are named. What failed without a file is not missing."""
    return {
        "of": of, "total": total, "done": total - absent - len(failed), "failed": failed, "missing": absent,
        "missing_first": list(missing[:NAMED]),
    }  # fmt: skip


def _drives(folder: Path) -> dict[str, Any]:
    run = Run.open(folder)
    tokens = run.split.tokens()
    lost = {token: reason for token, reason in run.folder.ledger.failures().items() if token not in run.store}
    failed = {**lost, **_failed_drives(folder)}
    missing = [token for token in tokens if token not in run.store and token not in failed]
    return _counts("scenarios", len(tokens), failed, missing, len(missing))


def _failed_drives(folder: Path) -> dict[str, str]:
    """Drives that are there, with the reason why they score 0: the score cards say so."""
    cards = read_cards(folder) if (folder / CARDS).exists() else []
    return {card["token"]: str(card["failure"]) for card in cards if card.get("failure")}


def _shards(folder: Path) -> dict[str, Any]:
    if CACHE.is_in(folder):
        shards, total = ShardFiles(folder, FILES), -(-int(CACHE.read(folder)["samples"]) // PART)
    else:
        shards, total = ShardFiles(folder), int(LOGS.read(folder)["shards"])
    missing = [str(number) for number in shards.missing(total)]
    return _counts("shards", total, {}, missing, len(missing))


def _journalled(folder: Path, maps: list[dict[str, Any]]) -> dict[str, Any]:
    """What the last map says, and the ledger."""
    last: dict[str, Any] = maps[-1] if maps else {"pieces": 0, "label": "pieces", "missing": 0, "failed": 0}
    failed = Ledger(folder / "ledger.jsonl").failures()
    counts = _counts(last["label"], int(last["pieces"] or 0), {}, (), last["missing"])
    return {**counts, "done": counts["done"] - last["failed"], "failed": failed}
