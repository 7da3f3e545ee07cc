"""Settings of trainings: what 0.1.0 wrote to config.json still resumes; the command line fills the same settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tyro

from radp.cli.main import CONFIG
from radp.cli.train import TrainAlign, TrainBase, TrainHead
from radp.model.config import ModelConfig
from radp.model.paths import model_path
from radp.runs.folder import RunError, RunFolder
from radp.training.settings import AlignConfig, BaseConfig, HeadTraining, LoopConfig, paper_loop
from radp.version import __version__

LOOP = {
    "steps": 2_000, "batch": 128, "lr": 2e-5, "weight_decay": 0.01, "warmup": 0, "schedule": "constant", "clip": 5.0,
    "ema": 0.999, "ema_warmup": True, "seed": 3407, "log_every": 50, "save_every": 100, "validate_every": 500,
}  # fmt: skip
ALIGN = {
    "loop": LOOP, "lora": {"rank": 8, "alpha": 16, "dropout": 0.05}, "strength": 0.004, "ego_weight": 2.0,
    "rules": True, "normalise": True, "min_time": 0.0, "max_time": 1.0, "focus_share": 0.0, "compress": False,
    "augment": 0.5,
}  # fmt: skip


def written_by_0_1_0(folder: Path, command: str) -> dict[str, Any]:
    """A run folder as 0.1.0 wrote it: those of packaged models, and one of the paper's alignment; its config.json."""
    if command == "train base":
        config = json.loads((model_path("diffusion-planner-mini-v1") / "config.json").read_text())["training"]
    elif command == "train head":
        config = json.loads((model_path("radp-mini-v1") / "head.json").read_text())["about"]["run"]
    else:
        config = RunFolder.create(folder, command, ALIGN | {"base": "mini"}, seed=3407).config
    (folder / "config.json").write_text(json.dumps(config | {"radp": __version__}))
    return config


def settings_of(command: str, stored: dict[str, Any]) -> Any:
    """The same settings as they are made today."""
    if command == "train base":
        recipe = {name: stored[name] for name in ("augment", "ego_weight", "validation_samples", "validation_batch")}
        return BaseConfig(model=ModelConfig(**stored["model"]), loop=LoopConfig(**stored["loop"]), **recipe)
    return AlignConfig() if command == "train align" else HeadTraining()


@pytest.mark.parametrize("command", ["train base", "train align", "train head"])
def test_trainings_of_0_1_0_go_on(tmp_path: Path, command: str) -> None:
    stored = written_by_0_1_0(tmp_path, command)["settings"]
    facts = {name: stored[name] for name in ("data", "samples", "start_from", "cache", "base") if name in stored}
    again = RunFolder.create(tmp_path, command, settings_of(command, stored), 3407, {"threads": 2}, facts)
    assert again.settings == stored


def test_a_setting_of_the_loop_that_0_1_0_did_not_know_is_compared_with_its_default(tmp_path: Path) -> None:
    stored = written_by_0_1_0(tmp_path, "train align")["settings"]
    assert "decay" not in stored["loop"]
    now = AlignConfig(loop=replace(paper_loop(), decay=9))
    with pytest.raises(RunError, match=r"loop\.decay is 0 there and 9 now"):
        RunFolder.create(tmp_path, "train align", now, 3407, facts={"base": "mini"})


def test_defaults_of_the_command_line() -> None:
    base = read(TrainBase, "--data a b --out o").config
    assert base.loop == LoopConfig(validate_every=5_000)
    assert read(TrainAlign, "--base m --data a --out o").config == AlignConfig(focus_share=0.5)
    assert read(TrainHead, "--cache c --out o").config == HeadTraining()


def test_options_reach_nested_settings_without_a_prefix() -> None:
    words = "--base m --data a --out o --no-rules --no-normalisation --steps 5 --rank 4 --seed 1 --processes 2"
    align = read(TrainAlign, words)
    assert not align.config.rules and not align.config.normalise and align.config.lora.rank == 4
    assert (align.config.loop.steps, align.config.loop.seed, align.training.processes) == (5, 1, 2)


def read(verb: type, words: str) -> Any:
    return tyro.cli(verb, args=words.split(), config=CONFIG)
