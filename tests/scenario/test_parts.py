"""A tenth of the logs is held out, the same everywhere and with all egos of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.scenario.parts import DEV, HELD_OUT, REST, TRAIN, is_held_out, log_of, name_and_part, positions
from radp.scenario.splits import open_split
from radp.scenario.store import ScenarioWriter
from tests.small_scenarios import small_scenario

LOGS = [f"log{i}" for i in range(3000)]


def test_about_a_tenth_is_held_out() -> None:
    share = sum(map(is_held_out, LOGS)) / len(LOGS)
    assert abs(share - 0.1) < 0.02  # three standard deviations and a half


def test_the_rule_is_what_the_page_says() -> None:
    """The first 16 digits of `printf log4 | sha256sum`, and of log15, the first that is held out."""
    assert 0x23D547881CBC4D04 % 10 != 0 and not is_held_out("log4")
    assert 0xD117937945BE3AF8 % 10 == 0 and next(log for log in LOGS if is_held_out(log)) == "log15"


def test_all_egos_of_a_log_are_in_its_part() -> None:
    assert log_of("log15:17") == log_of("log15") == "log15"
    assert all(is_held_out(f"{log}:{ego}") == is_held_out(log) for log in LOGS[:200] for ego in (1, 23, "ego"))


def test_the_parts_make_up_the_whole() -> None:
    held_out, rest = positions(LOGS, HELD_OUT), positions(LOGS, REST)
    assert sorted(held_out + rest) == list(range(len(LOGS))) and not set(held_out) & set(rest)
    dev, train = positions(LOGS, DEV), positions(LOGS, TRAIN)
    assert sorted(dev + train) == rest and abs(len(dev) / len(LOGS) - 0.1) < 0.02


def test_every_nth_begins_with_the_first() -> None:
    assert positions(LOGS[:7], "every-3") == [0, 3, 6] and positions(LOGS[:3], "every-1") == [0, 1, 2]


def test_only_these_words_are_parts() -> None:
    assert name_and_part("a@b/waymo@rest") == ("a@b/waymo", "rest")
    assert name_and_part("runs/x@train@dev") == ("runs/x@train", "dev")
    assert name_and_part("runs/x@every-12") == ("runs/x", "every-12")
    for whole in ("a@b", "@rest", "x@every-", "x@every-0", "x@every-two", "x@7"):
        assert name_and_part(whole) == (whole, None)


@pytest.mark.parametrize("kind", ("store", "json"))
def test_a_part_of_a_split_is_opened_by_name(tmp_path: Path, kind: str) -> None:
    tokens = [name for log in LOGS[12:18] for name in (log, f"{log}:3")]
    folder = tmp_path / "whole"
    if kind == "store":
        with ScenarioWriter(folder) as writer:
            for token in tokens:
                writer.add(small_scenario(token))
    else:
        folder.mkdir()
        for i, token in enumerate(tokens):
            save_json(scenario_to_json(small_scenario(token)), folder / f"{i:02d}.json")
    expected = [token for token in tokens if is_held_out(token)]
    part, rest = open_split(f"{folder}@held-out"), open_split(f"{folder}@rest")
    assert part.tokens() == expected == [s.token for s in part] and expected
    assert rest.tokens() == [token for token in tokens if token not in expected]
    assert part[1:].tokens() == expected[1:] and rest.select([0, 2]).tokens() == [rest.tokens()[0], rest.tokens()[2]]
