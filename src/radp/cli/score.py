"""radp score: score drives as nuPlan does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from radp.runs.errors import BadInput, one_line, sentence
from radp.runs.json_text import json_text
from radp.storage.errors import StoreError

if TYPE_CHECKING:
    from radp.sim.rollout import Rollout

TABLES = (".parquet", ".csv")
SUFFIXES, LOG_SUFFIX = (".json", ".json.gz"), ".msgpack.xz"
BATCH = 64  # drives read and scored at a time


@dataclass(frozen=True)
class Score:
    """Score drives with nuPlan's closed-loop metrics: what cost how much, when, with which object, by what margin.

    Takes neutral JSON files (.json, .json.gz), SimulationLog files of nuplan-devkit (.msgpack.xz), folders of either,
    folders of radp simulate, and results that nuplan-devkit wrote (aggregator .parquet or .csv, folders of metric
    files). A file or drive that cannot be used, and drives that are missing from a run, get one sentence on stderr and
    exit code 2; the others are scored all the same.
    A SimulationLog without its map has no score, only what needs no map.

    Example:
        radp score drive.json.gz
        radp score runs/pdm --json
        radp score exported/ --quiet
        radp score drive.msgpack.xz --maps nuplan/maps
        radp score runs/idm runs/pdm --rulebook
    """

    paths: Positional[tuple[Path, ...]]
    """Files or folders."""
    maps: Path | None = None
    """Folder of nuPlan's maps, for SimulationLog files."""
    allow_missing: bool = False
    """Exit with code 0 although drives are missing from a run; the summary counts them."""
    json: bool = False
    """Print one JSON object: drives (the score cards), summary, errors."""
    quiet: bool = False
    """Print the summary only."""
    rulebook: bool = False
    """Compare the drives of two files or folders by the rulebook instead: who keeps the higher tiers better."""

    def __call__(self) -> int:
        if self.rulebook:
            return self._by_rulebook()
        from radp.metrics.card import card_text, score_card
        from radp.metrics.score import evaluate_many
        from radp.metrics.summary import summarise, summary_text

        if not self.paths:
            raise BadInput("radp score needs at least one file or folder")
        errors: list[str] = []
        missing: list[str] = []
        tables = tuple(path for path in self.paths if _is_table(path))
        cards, means = _published(tables, errors)
        seeds = {0} if tables else set()
        drives = tuple(path for path in self.paths if path not in tables)
        for batch in _batches(_rollouts(drives, self.maps, errors, missing)):
            for result in evaluate_many(batch):
                cards.append(score_card(result))
                seeds.add(result.seed)
                if not (self.json or self.quiet):
                    print(card_text(cards[-1]), end="\n\n")
        summary = summarise(cards, seed=seeds.pop() if len(seeds) == 1 else 0)
        if missing:
            summary["missing"] = len(missing)
        if self.json:
            beside = {"means": means} if means else {}
            print(json_text({"drives": cards, "summary": summary, **beside, "errors": errors}))
        else:
            print("".join(f"{_mean_text(row)}\n" for row in means), end="")
            if len(cards) > 1 or (self.quiet and (cards or not means)):
                print(summary_text(summary))
        return 2 if errors or not (cards or means) or (missing and not self.allow_missing) else 0

    def _by_rulebook(self) -> int:
        """Drives of the same scenarios at two paths, pair by pair."""
        from radp.evaluation.rulebook import compare_drives, comparison_text

        if len(self.paths) != 2:
            raise BadInput(f"the rulebook compares the drives of two paths, not of {len(self.paths)}")
        errors: list[str] = []
        missing: list[str] = []
        first, second = (
            {rollout.scenario.token: rollout for rollout in _rollouts((path,), self.maps, errors, missing)}
            for path in self.paths
        )
        both = [token for token in first if token in second]
        if not both:
            raise BadInput(f"{self.paths[0]} and {self.paths[1]} hold no drives of the same scenario")
        found = []
        for token in both:
            found.append(compare_drives(first[token], second[token]))
            if not (self.json or self.quiet):
                print(comparison_text(found[-1]), end="\n\n")
        counts = _counts(found)
        if self.json:
            print(json_text({"drives": found, "summary": counts, "errors": errors}))
        else:
            said = ", ".join(f"{name} in {count}" for name, count in counts.items())
            print(f"{self.paths[0]} against {self.paths[1]}: {said} of {len(found)} drives")
        return 2 if errors or (missing and not self.allow_missing) else 0


def _counts(found: list[dict[str, Any]]) -> dict[str, int]:
    """How often each outcome came out."""
    return {name: sum(one["outcome"] == name for one in found) for name in ("better", "worse", "incomparable", "equal")}


def _is_table(path: Path) -> bool:
    """Whether nuplan-devkit wrote results there."""
    return path.suffix in TABLES or (path.is_dir() and any(path.glob("metrics.*.parquet")))


def _published(paths: tuple[Path, ...], errors: list[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Score cards of nuplan-devkit's results, and the means that stand without their scenarios."""
    from radp.sources.nuplan.results import read_results

    cards: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    for path in paths:
        try:
            results = read_results(path)
        except BadInput as error:
            _complain(str(error), errors)
            continue
        cards += results.cards
        means += () if results.cards else results.totals
    return cards, means


def _mean_text(row: dict[str, Any]) -> str:
    words = [row["planner_name"], *(row.get(name) for name in ("model", "simulation", "validation", "scenario_type"))]
    name = "  ".join(one_line(str(word)) for word in words if word)
    return f"{name}  n {row['num_scenarios']:.0f}  score {row['score']:.4f}"


def _rollouts(paths: tuple[Path, ...], maps: Path | None, errors: list[str], missing: list[str]) -> Iterator[Rollout]:
    """The drives at all paths; what cannot be read is reported on stderr and kept in `errors`."""
    for path in paths:
        before, count = len(errors), 0
        run = (path / "config.json").exists()
        for rollout in _drives_of_run(path, errors, missing) if run else _drives_at(path, maps, errors):
            count += 1
            yield rollout
        if count == 0 and len(errors) == before:
            _complain(f"{path} holds no drives", errors)


def _drives_of_run(path: Path, errors: list[str], missing: list[str]) -> Iterator[Rollout]:
    """The drives of a run; what was lost on the way and is in its ledger counts as failed."""
    from radp.evaluation.closed_loop import Run

    try:
        run = Run.open(path)
        gone, lost = set(run.missing()), run.folder.ledger.failures()
        missing += gone
        if gone:
            print(f"radp: {run.incomplete}", file=sys.stderr)
        for position, token in enumerate(run.split.tokens()):
            if token in gone:
                continue
            try:
                yield run.drive(run.split[position], lost.get(token, ""))
            except StoreError as error:
                _complain(str(error), errors)
    except (BadInput, OSError) as error:
        _complain(sentence(error), errors)


def _drives_at(path: Path, maps: Path | None, errors: list[str]) -> Iterator[Rollout]:
    from radp.scenario.neutral_json import load_json
    from radp.sim.rollout import read_rollout, rollout_from_json

    if path.is_dir():
        for file in sorted(path.rglob(f"*{LOG_SUFFIX}")):
            yield from _drives_at(file, maps, errors)
        for file in sorted(f for f in path.iterdir() if f.name.endswith(SUFFIXES)):
            try:
                data = load_json(file)
                if "ego" in data:  # scenarios and results may lie beside the drives
                    yield rollout_from_json(data, str(file))
            except ValueError as error:
                _complain(str(error), errors)
    elif path.name.endswith(LOG_SUFFIX):
        from radp.sources.nuplan.simulation_log import read_simulation_log

        try:
            yield read_simulation_log(path, maps)
        except ValueError as error:
            _complain(str(error), errors)
    else:
        try:
            yield read_rollout(path)
        except ValueError as error:
            _complain(str(error), errors)


def _complain(words: str, errors: list[str]) -> None:
    print(f"radp: {one_line(words)}", file=sys.stderr)
    errors.append(words)


def _batches(rollouts: Iterator[Rollout]) -> Iterator[list[Rollout]]:
    batch: list[Rollout] = []
    for rollout in rollouts:
        batch.append(rollout)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
