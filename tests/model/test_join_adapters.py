"""Adapters of several rounds as one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from radp.model.adapters import CONFIG, add_adapters, join_adapters, load_adapters, resume_adapters, save_adapters
from radp.model.checkpoint import save_model
from radp.model.config import LoraSettings
from radp.planners.learned import load_planner_model, package_planner
from radp.runs.errors import BadInput
from tests.made_models import SMALL, randomised


def made(path, seed: int, settings: LoraSettings):
    wrapped = add_adapters(randomised(SMALL), settings)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in wrapped.named_parameters():
            if "lora_" in name:
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    save_adapters(wrapped, path)
    return path


def test_joined_adapters_answer_like_one_upon_the_other(tmp_path):
    first = made(tmp_path / "first", 1, LoraSettings(rank=4, alpha=8))
    second = made(tmp_path / "second", 2, LoraSettings(rank=2, alpha=3))
    wanted = load_adapters(load_adapters(randomised(SMALL), first), second).state_dict()
    join_adapters([first, second], tmp_path / "joined")
    settings = json.loads((tmp_path / "joined" / CONFIG).read_text())
    assert (settings["r"], settings["lora_alpha"]) == (6, 6)
    save_model(randomised(SMALL), tmp_path / "base")
    planner = package_planner(str(tmp_path / "base"), [first, second], tmp_path / "planner")
    for found in (load_adapters(randomised(SMALL), tmp_path / "joined"), load_planner_model(planner)):
        for name, value in found.state_dict().items():
            torch.testing.assert_close(value, wanted[name], atol=1e-6, rtol=1e-5)
    assert json.loads((planner / "planner.json").read_text()) == {"base": "../base"}


def test_the_mean_of_adapters_adds_the_mean_of_what_each_adds(tmp_path):
    folders = [made(tmp_path / str(seed), seed, LoraSettings(rank=2 * seed, alpha=3)) for seed in (1, 2)]
    join_adapters(folders, tmp_path / "mean", mean=True)
    single = [load_adapters(randomised(SMALL), folder).state_dict() for folder in folders]
    for name, value in load_adapters(randomised(SMALL), tmp_path / "mean").state_dict().items():
        torch.testing.assert_close(value, (single[0][name] + single[1][name]) / 2, atol=1e-6, rtol=1e-5)


def test_what_adapters_add_may_count_more_than_once(tmp_path):
    first = made(tmp_path / "first", 1, LoraSettings(rank=4, alpha=8))
    join_adapters([first], tmp_path / "more", times=1.5)
    base, once = randomised(SMALL).state_dict(), load_adapters(randomised(SMALL), first).state_dict()
    for name, value in load_adapters(randomised(SMALL), tmp_path / "more").state_dict().items():
        torch.testing.assert_close(value, base[name] + 1.5 * (once[name] - base[name]), atol=1e-6, rtol=1e-5)


def test_what_is_no_plain_adapter_is_refused(tmp_path):
    first = made(tmp_path / "first", 1, LoraSettings())
    settings = json.loads((first / CONFIG).read_text())
    (first / CONFIG).write_text(json.dumps({**settings, "use_dora": True}))
    with pytest.raises(BadInput, match="only plain LoRA"):
        join_adapters([first], tmp_path / "joined")
    with pytest.raises(BadInput, match="is missing"):
        join_adapters([tmp_path / "nowhere"], tmp_path / "joined")


def test_training_goes_on_from_saved_adapters(tmp_path):
    first = made(tmp_path / "first", 1, LoraSettings(rank=4, alpha=6))
    wrapped = resume_adapters(randomised(SMALL), first)
    assert all("lora_" in name for name, p in wrapped.named_parameters() if p.requires_grad)
    save_adapters(wrapped, tmp_path / "again")
    settings = json.loads((tmp_path / "again" / CONFIG).read_text())
    assert (settings["r"], settings["lora_alpha"]) == (4, 6)
    wanted = load_adapters(randomised(SMALL), first).state_dict()
    for name, value in load_adapters(randomised(SMALL), tmp_path / "again").state_dict().items():
        torch.testing.assert_close(value, wanted[name])


def test_adapters_of_another_model_are_no_start(tmp_path):
    first = made(tmp_path / "first", 1, LoraSettings())
    with pytest.raises(BadInput, match="holds no adapter that fits"):
        resume_adapters(randomised(replace(SMALL, decoder_depth=SMALL.decoder_depth + 1)), first)


def test_adapters_of_all_layers_are_merged_joined_and_gone_on_from(tmp_path):
    settings = LoraSettings(rank=2, alpha=4, layers="all")
    folder = made(tmp_path / "all", 3, settings)
    base, merged = randomised(SMALL), load_adapters(randomised(SMALL), folder).state_dict()
    linear = {f"{name}.weight" for name, layer in base.named_modules() if isinstance(layer, torch.nn.Linear)}
    moved = {name for name, value in base.state_dict().items() if not torch.equal(value, merged[name])}
    assert moved == linear and any(name.startswith("encoder.") for name in moved)
    resumed = resume_adapters(randomised(SMALL), folder).merge_and_unload().state_dict()
    join_adapters([folder, folder], tmp_path / "mean", mean=True)
    mean = load_adapters(randomised(SMALL), tmp_path / "mean").state_dict()
    for name, value in merged.items():
        torch.testing.assert_close(resumed[name], value, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(mean[name], value, atol=1e-6, rtol=1e-5)
