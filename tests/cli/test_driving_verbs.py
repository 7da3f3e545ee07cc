"""Verbs that drive and keep what came of it: driven logs, the hardest scenarios, rounds of learning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from radp.cli.main import main
from radp.evaluation.closed_loop import Run
from radp.evaluation.winners import failure_sample
from radp.metrics.card import read_cards
from radp.metrics.score import evaluate
from radp.scenario.splits import open_split
from radp.scenario.store import ScenarioStore, ScenarioWriter
from radp.sources.synthetic import make_scenario


def run(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four logs of 3 s: two that go straight on, one to the left, one to the right."""
    store = tmp_path_factory.mktemp("short") / "logs"
    with ScenarioWriter(store) as writer:
        for seed in range(4):
            writer.add(make_scenario(seed, agents=4, frames=31))
    return store


def test_good_drives_become_logs(short: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = (
        "--scenarios",
        short,
        "--planner",
        "log_replay",
        "--agents",
        "nonreactive",
        "--workers",
        1,
        "--out",
        tmp_path,
    )
    assert run("data", "drive", *given) == 0
    store = ScenarioStore.open(tmp_path)
    refused = 4 - len(store)
    assert len(store) >= 1 and f"{len(store)} driven logs kept, {refused} refused" in capsys.readouterr().out
    logs = {log.token: log for log in open_split(short)}
    for driven in store:
        log = logs[driven.token.partition("@")[0]]
        np.testing.assert_allclose(driven.ego[driven.start, :2], log.ego[log.start, :2], atol=1e-6)
    assert run("data", "drive", *given, "--min-score", 0.9) == 2
    assert "holds another" in capsys.readouterr().err


def test_the_hardest_of_each_kind_are_kept(short: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--planner", "constant_velocity", "--scenarios", short, "--agents", "nonreactive")
    assert run("simulate", *given, "--out", tmp_path / "run") == 0
    capsys.readouterr()
    assert run("data", "keep-hardest", "--run", tmp_path / "run", "--per-kind", 1, "--out", tmp_path / "hard") == 0
    kept, whole = open_split(tmp_path / "hard"), Run.open(tmp_path / "run")
    assert f"{tmp_path / 'hard'}: 3 scenarios of 4" in capsys.readouterr().out
    scores = {rollout.scenario.token: evaluate(rollout).score for rollout in whole.rollouts()}
    for one in kept:
        rivals = [log.token for log in open_split(short) if log.kind == one.kind]
        assert scores[one.token] == min(scores[token] for token in rivals)
    assert run("data", "keep-hardest", "--run", tmp_path / "none", "--out", tmp_path / "x") == 2
    assert "none" in capsys.readouterr().err


def test_the_drives_of_a_run_become_logs(short: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--planner", "idm", "--scenarios", short, "--agents", "nonreactive")
    assert run("simulate", *given, "--out", tmp_path / "run") == 0
    assert run("data", "logs", "--run", tmp_path / "run", "--out", tmp_path / "logs") == 0
    assert f"{tmp_path / 'logs'}: 4 drives kept" in capsys.readouterr().out
    drive = ("--planner", "idm", "--min-score", 0, "--no-gates", "--agents", "nonreactive", "--workers", 1)
    assert run("data", "drive", "--scenarios", short, *drive, "--out", tmp_path / "driven") == 0
    for one, other in zip(ScenarioStore.open(tmp_path / "logs"), ScenarioStore.open(tmp_path / "driven")):
        assert one.token == other.token
        np.testing.assert_array_equal(one.ego, other.ego)
        np.testing.assert_array_equal(one.tracks.state, other.tracks.state)
    assert run("data", "logs", "--run", tmp_path / "run", "--out", tmp_path / "logs") == 2
    assert "holds a store already" in capsys.readouterr().err


def test_better_drives_become_logs_to_learn_from(
    short: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {name: tmp_path / name for name in ("constant_velocity", "log_replay", "idm")}
    for name, folder in runs.items():
        given = ("--planner", name, "--scenarios", short, "--agents", "nonreactive")
        assert run("simulate", *given, "--out", folder) == 0
    capsys.readouterr()
    given = ("--base", runs["constant_velocity"], "--runs", runs["idm"], runs["log_replay"])
    assert run("data", "winners", *given, "--out", tmp_path / "won") == 0
    said = capsys.readouterr().out
    base = read_cards(runs["constant_velocity"])
    failed = {card["token"]: at for card in base if (at := failure_sample(card)) is not None}
    logs = {log.token: log for log in open_split(short)}
    kept = list(ScenarioStore.open(tmp_path / "won"))
    assert kept and f"of {len(failed)} scenarios in which the base fails" in said
    for log in kept:
        whole = logs[log.token]
        driven = len(log.time_us) - log.start
        assert log.token in failed and 41 > driven > 10  # from where they part on
        if "idm" not in said:  # log_replay drives as logged
            np.testing.assert_allclose(log.ego[-1, :2], whole.ego[whole.start + 30, :2], atol=0.5)
    assert run("data", "winners", *given, "--out", tmp_path / "won") == 2
    assert "holds a store already" in capsys.readouterr().err
    other = tmp_path / "reactive"
    assert run("simulate", "--planner", "idm", "--scenarios", short, "--agents", "reactive", "--out", other) == 0
    assert run("data", "winners", *given[:2], "--runs", other, "--out", tmp_path / "x") == 2
    assert "other traffic" in capsys.readouterr().err


def test_a_share_of_takeovers_that_leaves_nothing_else_is_refused(
    short: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--start", "diffusion-planner-mini", "--scenarios", short, "--data", tmp_path, "--out", tmp_path / "r")
    assert run("train", "rounds", *given, "--dev", short, "--share", 1.0) == 2
    assert "share is 1.0, expected more than 0 and less than 1" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
