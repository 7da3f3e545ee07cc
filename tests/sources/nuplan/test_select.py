"""Selection: which scenarios a filter takes out of logs, in the order of the devkit's rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from radp.scenario import Ego
from radp.sources.nuplan.filter import ScenarioFilter
from radp.sources.nuplan.log_db import UNTAGGED, LogDb, Pick
from radp.sources.nuplan.select import apply_rules, limit_total, passes_speed, select, spread, thin, way_of_centre
from tests.sources.nuplan.made_files import FRAMES, frame_token, make_log

SECOND = 1_000_000
MIDDLE = FRAMES // 2  # in the fourth scene of six: the third and the fourth can be used


def pick(number: int, kind: str = "a", seconds: float = 0.0) -> Pick:
    return Pick(f"{number:016x}", kind, int(1e15 + seconds * SECOND), Path("log.db"), "city")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    tags = [(100, "a"), (850, "a"), (850, "b"), (1000, "a"), (MIDDLE, "b"), (MIDDLE, "c"), (1500, "a"), (1700, "a")]
    make_log(folder / "one.db", tags, box_step=100)
    make_log(folder / "sub" / "two.db", [(900, "a"), (MIDDLE, "b")], goals=False, map_name="elsewhere", box_step=100)
    (folder / "zzz.db").write_bytes(b"no database at all, but long enough to be looked at" * 10)
    return folder


def names(picks: list[Pick]) -> list[tuple[str, str]]:
    return [(p.token, p.kind) for p in picks]


def test_only_scenes_in_the_middle_and_the_last_tag(logs: Path) -> None:
    with LogDb(logs / "one.db") as log:
        offers = log.offers(("a", "b"), with_goal=True)
        every = log.offers(None, with_goal=False)
    expected = [(850, "b"), (1000, "a"), (MIDDLE, "b"), (1500, "a")]
    assert names(offers) == [(frame_token("one", f), kind) for f, kind in expected]
    assert len(every) == FRAMES // 3, "all frames of two scenes of six, of the merged lidar only"
    kinds = {p.token: p.kind for p in every}
    assert kinds[frame_token("one", MIDDLE)] == "c"
    assert kinds[frame_token("one", MIDDLE + 1)] == UNTAGGED


def test_select_over_a_folder(logs: Path) -> None:
    chosen = select(logs, ScenarioFilter(scenario_types=("a", "b")))
    assert [p.log.name for p in chosen.picks] == ["one.db"] * 4 + ["two.db"] * 2
    assert list(chosen.broken) == [logs / "zzz.db"]
    assert "not a readable log" in chosen.broken[logs / "zzz.db"]
    with_goal = select(logs, ScenarioFilter(scenario_types=("a", "b"), remove_invalid_goals=True))
    assert {p.log.name for p in with_goal.picks} == {"one.db"}
    assert {p.log.name for p in select(logs, ScenarioFilter(("a",), log_names=("two",))).picks} == {"two.db"}
    assert {p.map for p in select(logs, ScenarioFilter(("a",), map_names=("elsewhere",))).picks} == {"elsewhere"}


def test_tokens_that_no_log_offers(logs: Path) -> None:
    wanted = (frame_token("one", 1000), frame_token("one", 100), "0" * 16)
    chosen = select(logs, ScenarioFilter(scenario_types=("a",), scenario_tokens=wanted))
    assert [p.token for p in chosen.picks] == [wanted[0]]
    assert chosen.missing == wanted[1:], "frame 100 lies in a scene at the edge of the log"


def test_equal_strides() -> None:
    assert thin(list(range(10)), 3) == [0, 3, 6]
    assert thin(list(range(11)), 4) == [0, 2, 4, 6]
    assert thin(list(range(2)), 5) == [0, 1]


def test_time_between_scenarios() -> None:
    picks = [pick(i, seconds=s) for i, s in enumerate((40.0, 0.0, 14.9, 15.0, 29.0, 30.0))]
    assert [p.token for p in spread(picks, 15.0)] == [picks[i].token for i in (1, 3, 5)]
    assert spread([], 15.0) == []


def test_total_takes_untagged_away_first() -> None:
    by_type = {UNTAGGED: [pick(i, UNTAGGED) for i in range(6)], "a": [pick(i) for i in (13, 11, 12, 10)]}
    some = limit_total(by_type, 7)
    assert [len(some[kind]) for kind in (UNTAGGED, "a")] == [3, 4]
    few = limit_total(by_type, 2)
    assert {kind: [p.token for p in picks] for kind, picks in few.items()} == {"a": [pick(10).token, pick(12).token]}
    assert limit_total(by_type, 10) == by_type
    assert sum(map(len, limit_total(by_type, 0.5).values())) == 5


def test_rules_in_their_order() -> None:
    """20 of a type by strides first, then 15 s apart: the other way round more would be left."""
    offered = [pick(i, "a", seconds=10.0 * i) for i in range(40)] + [pick(100 + i, "b", seconds=i) for i in range(5)]
    wanted = ScenarioFilter(("a", "b"), num_scenarios_per_type=20, timestamp_threshold_s=15)
    kept = apply_rules(offered, wanted)
    assert names(kept) == names([*offered[:40:2], offered[40]])
    fewer = apply_rules(offered, replace(wanted, timestamp_threshold_s=25))
    assert names(fewer) == names([*offered[:40:4], offered[40]])


def test_shuffle_draws_and_repeats() -> None:
    offered = [pick(i, "a", seconds=20.0 * i) for i in range(200)]
    wanted = ScenarioFilter(("a",), num_scenarios_per_type=10, shuffle=True)
    assert len(apply_rules(offered, wanted)) == 10
    assert apply_rules(offered, wanted) == apply_rules(offered, wanted)
    assert apply_rules(offered, wanted) != apply_rules(offered, replace(wanted, shuffle=False))


def ego_of(speeds: list[float]) -> np.ndarray:
    ego = np.zeros((len(speeds), len(Ego)))
    ego[:, Ego.VX] = speeds
    ego[1:, Ego.X] = np.cumsum(speeds[:-1]) * 0.1
    return ego


def test_what_the_ego_does() -> None:
    assert passes_speed(ego_of([0.0, 0.5, 2.0]), 1.0, 0.1) == (True, False)
    assert passes_speed(ego_of([2.0, 0.5, 0.0]), 1.0, 0.1) == (False, True)
    assert passes_speed(ego_of([0.98, 1.02, 0.98]), 1.0, 0.1) == (False, False)
    assert way_of_centre(ego_of([10.0] * 11)) == pytest.approx(9.0)


def test_ego_rules_read_the_log(tmp_path: Path) -> None:
    speeds = np.where(np.arange(FRAMES) < 1000, 0.0, 5.0)
    make_log(tmp_path / "log.db", [(850, "a"), (1500, "a")], speeds=speeds, box_step=100)
    starts = select(tmp_path, ScenarioFilter(("a",), ego_start_speed_threshold=1.0)).picks
    assert [p.token for p in starts] == [frame_token("log", 850)]
    moves = select(tmp_path, ScenarioFilter(("a",), ego_displacement_minimum_m=60.0)).picks
    assert [p.token for p in moves] == [frame_token("log", 1500)]
    assert not select(tmp_path, ScenarioFilter(("a",), ego_stop_speed_threshold=1.0)).picks
