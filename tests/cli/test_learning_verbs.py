"""The way from logs to a planner with a head, verb by verb, with a planner that is tiny and knows nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from radp.attribution.cache import Cache
from radp.attribution.calibration import Calibration
from radp.cli.main import main
from radp.planners.learned import load_learned, load_planner_model
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario

TINY = ("hidden=24", "encoder_depth=1", "decoder_depth=1", "preproj_hidden=24", "noise_draws=1")


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """samples: of one log; base/model: two steps of training on them; short: one log of 3 s to drive."""
    work = tmp_path_factory.mktemp("learning")
    for name, frames in (("logs", 151), ("short", 31)):
        with ScenarioWriter(work / name) as writer:
            writer.add(make_scenario(3, agents=6, frames=frames))
    choice = ("--stride", 30, "--other-egos", 2, "--workers", 1)
    assert run("data", "samples", "--scenarios", work / "logs", "--out", work / "samples", *choice) == 0
    steps = ("--steps", 2, "--batch", 4, "--threads", 1, "--switches", *TINY)
    assert run("train", "base", "--data", work / "samples", "--out", work / "base", *steps) == 0
    return work


@pytest.fixture(scope="module")
def planner(work: Path) -> Path:
    """The base model with levels and a head."""
    planner, cache = work / "planner", work / "cache"
    shutil.copytree(work / "base" / "model", planner)
    some = ("--planner", planner, "--data", work / "samples")
    assert run("calibrate", *some, "--batches", 2, "--batch", 4, "--threads", 1, "--out", planner) == 0
    assert run("cache", *some, "--samples", 8, "--workers", 1, "--out", cache) == 0
    head = ("--epochs", 2, "--batch", 4, "--heads", 6, "--threads", 1)
    assert run("train", "head", "--cache", cache, "--validation", cache, "--out", work / "head", *head) == 0
    for file in (work / "head" / "head").iterdir():
        shutil.copy(file, planner)
    return planner


def test_a_head_is_taught_by_what_was_cached(work: Path, planner: Path) -> None:
    cache, levels = Cache(work / "cache"), Calibration.load(planner)
    assert len(cache) == 8 and cache.rules == levels.rules
    assert levels.samples == 8 and all(kappa > 0 for kappa in levels.kappa)
    learned = load_learned(planner)
    assert learned.head is not None and learned.head.config.rules == levels.rules
    settings = json.loads((work / "head" / "config.json").read_text())["settings"]
    assert (settings["epochs"], settings["batch"]) == (2, 4)


def test_a_head_that_sees_the_geometry_learns_on_states_of_its_planners_drives(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planner, own, cache = tmp_path / "planner", tmp_path / "own", tmp_path / "cache"
    shutil.copytree(work / "base" / "model", planner)
    driven = ("--scenarios", work / "short", "--agents", "nonreactive")
    assert run("simulate", "--planner", planner, *driven, "--out", own) == 0
    some = ("--planner", planner, "--data", own, "--rule-set", "v2", "--stride", 3)
    assert run("calibrate", *some, "--batches", 2, "--batch", 4, "--threads", 1, "--out", planner) == 0
    assert Calibration.load(planner, "v2").samples == 8 and not (planner / "calibration.json").exists()
    assert run("cache", *some, "--workers", 1, "--out", cache) == 0
    assert len(Cache(cache)) == 10 and Cache(cache).rule_set == "v2"  # every third of 30 samples
    head = ("--cache", cache, "--epochs", 2, "--batch", 4, "--heads", 6, "--threads", 1, "--out", tmp_path / "head")
    assert run("train", "head", *head, "--geometry", "cheap") == 0
    for file in (tmp_path / "head" / "head").iterdir():
        shutil.copy(file, planner)
    config = load_learned(planner).head.config
    assert (config.geometry, config.rule_set) == ("cheap", "v2")
    assert run("evaluate", "fidelity", "--planner", planner, "--splits", work / "short", "--agents", "nonreactive",
               "--out", tmp_path / "fidelity", "--json") == 0  # fmt: skip
    capsys.readouterr()
    assert run("train", "head", *head[:-1], tmp_path / "other", "--geometry", "full") == 2
    assert "keeps no full geometry; radp cache --geometry full" in capsys.readouterr().err


def test_without_levels_there_is_no_cache(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = ("--planner", work / "base" / "model", "--data", work / "samples", "--samples", 2)
    assert run("cache", *some, "--out", tmp_path / "c") == 2
    assert "run radp calibrate first" in capsys.readouterr().err and not (tmp_path / "c").exists()


def test_a_head_is_not_validated_on_a_cache_of_other_levels(
    work: Path, planner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Calibration(Calibration.load(planner).rules, (1.0,) * 6, samples=1).save(tmp_path)
    some = ("--planner", planner, "--data", work / "samples", "--samples", 2, "--workers", 1)
    assert run("cache", *some, "--calibration", tmp_path, "--out", tmp_path / "other") == 0
    given = ("--cache", work / "cache", "--validation", tmp_path / "other", "--out", tmp_path / "head")
    assert run("train", "head", *given) == 2
    assert "was made with another planner, other rules or another calibration" in capsys.readouterr().err


def test_adapters_are_learned_on_a_list_of_samples(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, samples, focus = work / "base" / "model", work / "samples", tmp_path / "focus.json"
    looked = ("--samples", 10, "--within", 8.0, "--threads", 1)
    assert run("train", "focus", "--planner", base, "--data", samples, "--out", focus, *looked) == 0
    found = json.loads(focus.read_text())
    assert found["of"] == found["looked_at"] <= 10
    assert f"{focus}: {len(found['rows'])} of {found['of']} samples" in capsys.readouterr().out
    found["rows"] = [0, 1]  # an untrained planner may touch nobody
    focus.write_text(json.dumps(found))
    steps = ("--steps", 2, "--batch", 4, "--threads", 1)
    given = ("--base", base, "--data", samples, "--focus", focus, "--out", tmp_path / "align")
    assert run("train", "align", *given, *steps) == 0
    settings = json.loads((tmp_path / "align" / "config.json").read_text())["settings"]
    assert (settings["focus"], settings["focus_share"]) == (2, 0.5)
    assert set(json.loads((tmp_path / "align" / "scales.json").read_text())) >= {"collision", "goal"}
    adapter = tmp_path / "align" / "adapter"
    assert capsys.readouterr().out.split()[-1] == str(adapter)
    (adapter / "planner.json").write_text(json.dumps({"base": str(base)}))
    plain, aligned = load_planner_model(base).state_dict(), load_planner_model(adapter).state_dict()
    assert any(not torch.equal(plain[name], aligned[name]) for name in plain)


def test_drives_that_end_are_enough_without_rules_and_adapters_can_go_on(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples, steps = tmp_path / "samples", ("--steps", 2, "--batch", 2, "--threads", 1)
    assert (
        run("data", "samples", "--scenarios", work / "logs", "--other-egos", 0, "--future", 40, "--out", samples) == 0
    )
    given = ("--base", work / "base" / "model", "--data", samples)
    assert run("train", "align", *given, *steps, "--no-rules", "--out", tmp_path / "first") == 0
    first = tmp_path / "first" / "adapter"
    assert run("train", "align", *given, *steps, "--no-rules", "--start", first, "--out", tmp_path / "second") == 0
    assert (tmp_path / "second" / "adapter" / "adapter_model.safetensors").is_file()
    capsys.readouterr()
    assert run("train", "align", *given, *steps, "--out", tmp_path / "ruled") == 2
    assert "future" in capsys.readouterr().err


def test_weights_are_learned_as_pushes_and_asked_for_on_states(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    way = ("--conditioned", "--hold", "base", "--way", "pushed", "--trained", "weights", "--rule-set", "v2")
    given = ("--base", work / "base" / "model", "--data", work / "samples", "--out", tmp_path / "weights")
    steps = ("--steps", 3, "--batch", 4, "--lr", 1e-2, "--threads", 1)
    assert run("train", "align", *given, *way, *steps) == 0
    model = tmp_path / "weights" / "model"
    assert capsys.readouterr().out.split()[-1] == str(model)
    asked = ("--planner", model, "--states", work / "samples", "--rules", "goal", "--doses", 0.25, 4)
    assert run("evaluate", "dose", *asked, "--count", 6, "--out", tmp_path / "dose", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((tmp_path / "dose" / "dose-states.json").read_text())
    (rule,) = told["rules"]
    low, usual, high = rule["doses"]
    assert (rule["rule"], low["weight"], usual["weight"], high["weight"]) == ("goal", 0.25, 1.0, 4.0)
    assert usual["change"]["cost"]["value"] == usual["change"]["moved"]["value"] == 0.0
    assert low["change"]["moved"]["value"] > 0.0 and high["change"]["moved"]["value"] > 0.0  # it listens
    text = (tmp_path / "dose" / "dose-states.md").read_text()
    assert "| goal |" in text and "At the default: goal" in text


def test_fidelity_and_alignment_of_its_drives(
    work: Path, planner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--planner", planner, "--splits", work / "short", "--agents", "nonreactive", "--out", tmp_path)
    assert run("evaluate", "fidelity", *given, "--json") == 0
    printed, written = json.loads(capsys.readouterr().out), json.loads((tmp_path / "fidelity.json").read_text())
    assert printed == written and len(written["splits"]) == 1 and written["planner"] == str(planner)
    (drives,) = (path.parent for path in tmp_path.rglob("config.json"))
    assert run("evaluate", "alignment", drives, "--out", tmp_path / "alignment") == 0
    assert "collision" in capsys.readouterr().out and list((tmp_path / "alignment").glob("*.md"))


def test_the_weights_of_a_run_go_out_in_the_published_layout_only_if_it_can_say_them(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--planner", work / "base" / "model", "--out", tmp_path / "model.pth")
    assert run("export", "diffusion-planner", *given) == 2
    assert "the published layout has no place for" in capsys.readouterr().err
    assert not (tmp_path / "model.pth").exists()
