"""The machinery of conversions: order, failures, and taking up a killed run."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from radp.runs.errors import BadInput
from radp.runs.ledger import Ledger
from radp.scenario import Scenario
from radp.scenario.store import ScenarioStore
from radp.sources import convert as machinery
from radp.sources.convert import FileItem, Refused, SourceError, convert, load_source
from radp.sources.settings import LogChoice
from tests.small_scenarios import small_scenario


@dataclass(frozen=True)
class Made:
    """Logs by number: 3 is broken, 5 holds one scenario that is refused and one whose ego is not finite."""

    name: str = "made"
    dies_at: int = -1

    def items(self, options: LogChoice) -> list[FileItem]:
        return [FileItem(f"log{i}", Path(str(i))) for i in range(8)]

    def scenarios(self, item: FileItem) -> Iterator[Scenario | Refused]:
        number = int(item.path.name)
        if number == self.dies_at:
            os._exit(9)
        if number == 3:
            raise SourceError(f"{item.path}: field 'objects' is missing")
        for part in range(3):
            scenario = small_scenario(token=f"{number}-{part}")
            if number == 5 and part == 0:
                yield Refused("5-0", "no track is complete")
            elif number == 5 and part == 1:
                ego = scenario.ego.copy()
                ego[0] = float("nan")
                yield replace(scenario, ego=ego)
            else:
                yield scenario


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.arrow"))}


def test_what_fails_is_on_record_and_the_rest_goes_on(tmp_path: Path) -> None:
    card = convert(Made(), LogChoice(data=tmp_path), tmp_path / "out", isolated=False)
    tokens = ScenarioStore.open(tmp_path / "out").tokens()
    assert tokens == [f"{i}-{p}" for i in range(8) for p in range(3) if i != 3 and not (i == 5 and p < 2)]
    failures = Ledger(tmp_path / "out" / "ledger.jsonl").failures()
    assert set(failures) == {"log3", "5-0", "5-1"}
    assert "field 'objects' is missing" in failures["log3"] and "ego has x = nan" in failures["5-1"]
    assert card["scenarios"] == len(tokens) and card["failed"] == failures
    assert json.loads((tmp_path / "out" / "card.json").read_text()) == card


def test_the_store_does_not_depend_on_workers(tmp_path: Path) -> None:
    convert(Made(), LogChoice(data=tmp_path), tmp_path / "one", isolated=False)
    convert(Made(), LogChoice(data=tmp_path), tmp_path / "two", workers=2, isolated=False)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def _convert_and_die(out: Path, dies_at: int) -> None:
    machinery.ROWS_PER_SHARD = 4
    convert(Made(dies_at=dies_at), LogChoice(data=out), out, isolated=False)


@pytest.mark.parametrize("dies_at", (1, 4, 7))
def test_a_killed_conversion_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int) -> None:
    monkeypatch.setattr(machinery, "ROWS_PER_SHARD", 4)
    convert(Made(), LogChoice(data=tmp_path / "cut"), tmp_path / "whole", isolated=False)
    process = multiprocessing.get_context("spawn").Process(target=_convert_and_die, args=(tmp_path / "cut", dies_at))
    process.start()
    process.join()
    assert process.exitcode == 9
    before = len(ScenarioStore.open(tmp_path / "cut", allow_missing=True))
    asked = []
    source = Made()
    monkeypatch.setattr(Made, "scenarios", _counted(Made.scenarios, asked))
    convert(source, LogChoice(data=tmp_path / "cut"), tmp_path / "cut", isolated=False)
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
    assert before < len(ScenarioStore.open(tmp_path / "cut")) and len(asked) <= 8 - before // 3


def _counted(function, asked):
    def count(self, item):
        asked.append(item.name)
        return function(self, item)

    return count


def test_a_finished_conversion_does_nothing_again_but_retry_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = convert(Made(), LogChoice(data=tmp_path), tmp_path / "out", isolated=False)
    before, asked = files(tmp_path / "out"), []
    monkeypatch.setattr(Made, "scenarios", _counted(Made.scenarios, asked))
    assert convert(Made(), LogChoice(data=tmp_path), tmp_path / "out", isolated=False) == card
    assert asked == ["log3"] and files(tmp_path / "out") == before


def test_another_conversion_is_refused(tmp_path: Path) -> None:
    convert(Made(), LogChoice(data=tmp_path), tmp_path / "out", isolated=False)
    with pytest.raises(BadInput, match="ego is 'sdc' there and 'all' now"):
        convert(Made(), LogChoice(data=tmp_path, ego="all"), tmp_path / "out", isolated=False)


def test_an_unknown_source_is_one_sentence() -> None:
    with pytest.raises(BadInput, match="unknown source 'kitti'; expected one of nuplan, "):
        load_source("kitti")
