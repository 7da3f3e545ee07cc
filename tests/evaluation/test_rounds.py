"""Rounds of learning in the loop: what is kept, and going on after a kill."""

from dataclasses import replace
from pathlib import Path

import pytest

from radp.evaluation.rounds import _judge, remaining, run_rounds
from radp.evaluation.settings import Rounds
from radp.runs.errors import BadInput
from radp.scenario.parts import name_and_part, positions
from radp.scenario.splits import open_split
from radp.scenario.store import ScenarioWriter


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Rounds:
    """Four scenarios to learn on, one that chooses, and planners that need no training in the place of models."""
    folder = tmp_path_factory.mktemp("rounds")
    split = open_split("sumo14-val")
    for name, places in (("train", (0, 60, 130, 200)), ("dev", (25,))):
        with ScenarioWriter(folder / name) as writer:
            for place in places:
                writer.add(split[place])
    scenarios, dev = str(folder / "train"), str(folder / "dev")
    return Rounds(start="constant_velocity", scenarios=scenarios, dev=dev, rounds=2, expert="idm", stride=20)


def test_a_round_is_kept_if_collisions_do_not_rise():
    better, equal, worse = ((before, 0.5) for before in (0.9, 0.8, 0.7))
    assert _judge("a", "b", (0.8, 0.9), better).kept and _judge("a", "b", (0.8, 0.9), equal).kept
    worse_round = _judge("a", "b", (0.8, 0.9), worse)
    assert not worse_round.kept
    settings = Rounds(start="a", scenarios="", dev="")
    assert remaining([worse_round], settings) == "a"
    assert remaining([_judge("a", "b", (0.8, 0.9), better), worse_round], settings) == "b"


def test_rounds_go_on_where_they_were_stopped(world, tmp_path):
    calls: list[tuple[str, int]] = []

    def train(model: str, samples, folder: Path) -> Path:
        calls.append((model, len(samples)))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return Path("idm")

    with pytest.raises(KeyboardInterrupt):
        run_rounds(world, train, tmp_path)
    done = run_rounds(world, train, tmp_path)
    assert len(done) == 2 and len(calls) == 3, "the first round is not trained again"
    assert calls == [("constant_velocity", 1), ("idm", 2), ("idm", 2)], "from its own takeovers and the earlier ones"
    assert all((tmp_path / f"round-{i}" / "samples" / "manifest.json").exists() for i in (0, 1))
    assert run_rounds(world, train, tmp_path) == done and len(calls) == 3


def test_no_rounds_are_refused(world, tmp_path):
    with pytest.raises(BadInput, match="rounds is 0"):
        run_rounds(replace(world, rounds=0), lambda *_: Path(), tmp_path)


def test_parts_of_rounds_share_no_scenario():
    tokens = [str(i) for i in range(10)]
    parts = [positions(tokens, name_and_part(f"runs/train@every-3+{k}")[1]) for k in range(3)]
    assert sorted([*parts[0], *parts[1], *parts[2]]) == list(range(10)) and parts[1] == [1, 4, 7]
    assert name_and_part("runs/train@every-0") == ("runs/train@every-0", None)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"scenarios": "nowhere"}, "neither a packaged split"), ({"dev": "nowhere"}, "neither a packaged split"),
     ({"expert": "nobody"}, "no planner 'nobody'")],
)  # fmt: skip
def test_what_is_needed_later_is_looked_for_first(world, tmp_path, change, words):
    with pytest.raises(ValueError, match=words):
        run_rounds(replace(world, **change), lambda *_: Path(), tmp_path / "out")
    assert not (tmp_path / "out").exists()
