"""Training as processes: killed with SIGKILL and started again, and shared by two processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from radp.cli.main import main
from radp.runs.errors import BadInput
from radp.runs.processes import share
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario
from tests.runs.refusing import refuse
from tests.training.toy_task import train_toy

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
TINY = ("hidden=24", "encoder_depth=1", "decoder_depth=1", "preproj_hidden=24", "noise_draws=1")


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    with ScenarioWriter(folder / "logs") as writer:
        writer.add(make_scenario(3, agents=6))
    options = ["--stride", "10", "--workers", "1"]
    assert (
        main(["data", "samples", "--scenarios", f"{folder / 'logs'}", "--out", f"{folder / 'samples'}", *options]) == 0
    )
    return folder / "samples"


def train(samples: Path, out: Path, steps: int = 6, switches: tuple[str, ...] = TINY) -> list[str]:
    """Words of `radp` that train a planner, a tiny one unless switched otherwise, with one thread."""
    options = {"--data": samples, "--out": out, "--steps": steps, "--batch": 4, "--save-every": 3, "--threads": 1}
    words = [str(word) for pair in options.items() for word in pair]
    return ["train", "base", *words, "--switches", *switches]


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model" / "model.safetensors")


def test_a_killed_training_ends_with_the_same_weights(samples, tmp_path):
    """The one that is killed has so many steps left that it cannot be over before."""
    whole, killed = train(samples, tmp_path / "whole", 30), train(samples, tmp_path / "killed", 30)
    process = subprocess.Popen([sys.executable, "-m", "radp.cli.main", *killed], env=ONE_THREAD)
    state = tmp_path / "killed" / "state"
    while not list(state.glob("step_*.pt")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was over before it could be killed"
    assert main(killed) == main(whole) == 0
    expected, resumed = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert expected.keys() == resumed.keys()
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)


def test_two_processes_take_the_steps_that_one_takes(tmp_path):
    one, two = tmp_path / "one.pt", tmp_path / "two.pt"
    train_toy(tmp_path / "run1", one)
    share(partial(train_toy, tmp_path / "run2", two), 2)
    alone, shared = torch.load(one, weights_only=True), torch.load(two, weights_only=True)
    assert int(alone.pop("processes")) == 1 and int(shared.pop("processes")) == 2
    for name, value in alone.items():
        torch.testing.assert_close(shared[name], value, atol=1e-6, rtol=1e-5)


def test_the_command_trains_in_two_processes(samples, tmp_path, capfd):
    assert main([*train(samples, tmp_path / "own"), "--processes", "2"]) == 0
    assert capfd.readouterr().out.split() == [str(tmp_path / "own" / "model")]
    steps = [json.loads(line)["step"] for line in (tmp_path / "own" / "log.jsonl").read_text().splitlines()]
    assert steps == [6, 6], "the training row and the validation row of the last step, written once"


@pytest.mark.slow
def test_the_command_trains_under_accelerate_launch(samples, tmp_path, monkeypatch):
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    command += ["--module", "radp.cli.main", *train(samples, tmp_path / "launched")]
    done = subprocess.run(command, env={**ONE_THREAD, "ACCELERATE_USE_CPU": "true"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # else its processes count on more threads than those above
    assert main([*train(samples, tmp_path / "own"), "--processes", "2"]) == 0
    launched, shared = weights(tmp_path / "launched"), weights(tmp_path / "own")
    assert all(torch.equal(launched[name], shared[name]) for name in launched), "--processes is accelerate launch"


def test_switches_change_the_preset(samples, tmp_path, capsys):
    out, changed = tmp_path / "run", ("route_tokens=false", "near_horizon_s=null", "polyline_encoder=mixer")
    assert main([*train(samples, out, switches=changed), "--stop-after", "1"]) == 0
    model = json.loads((out / "config.json").read_text())["settings"]["model"]
    assert (model["route_tokens"], model["near_horizon_s"], model["polyline_encoder"]) == (False, None, "mixer")
    for wrong, message in (
        ("route_tokens", "no NAME=VALUE"),
        ("depth=3", "unknown settings depth"),
        ("polyline_encoder=flt", "expected one of mixer, flat"),
        ("hidden=wide", 'hidden is "wide", expected something like 120'),
        ("route_tokens=1", "expected something like true"),
    ):
        assert main(train(samples, out, switches=(wrong,))) == 2
        assert message in capsys.readouterr().err


def test_what_is_wrong_in_a_process_is_reported_in_one_sentence(samples, tmp_path, capfd):
    words = train(samples, tmp_path / "run")
    assert main([*words, "--batch", "5", "--processes", "2"]) == 2
    assert main([*words, "--batch", "4000"]) == 2
    errors = [line for line in capfd.readouterr().err.splitlines() if line.startswith("radp: ")]
    assert "cannot be shared by 2" in errors[0] and "fewer than one batch of 4000" in errors[1]
    with pytest.raises(BadInput, match=r"^there are no samples$"):
        share(refuse, 2)


@pytest.mark.slow
def test_the_published_size_trains_exports_and_drives(samples, tmp_path):
    """The command of docs/training.md with other numbers: two steps, then its folder drives and is written back in the
    published layout."""
    options = {"--data": samples, "--out": tmp_path / "full", "--preset": "nuplan", "--steps": 2, "--batch": 2}
    words = [str(word) for pair in options.items() for word in pair]
    recipe = ["--lr", "5e-4", "--weight-decay", "0.01", "--warmup", "1", "--schedule", "constant", "--no-ema-warmup"]
    assert main(["train", "base", *words, *recipe, "--threads", "1"]) == 0
    model = tmp_path / "full" / "model"
    out = tmp_path / "drive"
    drive = ["simulate", "--planner", str(model), "--scenarios", "sumo14-val", "--limit", "1", "--out", str(out)]
    assert main(drive) == 0
    published = tmp_path / "published.pth"
    assert main(["export", "diffusion-planner", "--planner", str(model), "--out", str(published)]) == 0
    assert published.is_file() and (tmp_path / "args.json").is_file()
