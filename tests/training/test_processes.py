"""Training as processes: killed with SIGKILL and started again, and shared by two processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from radp.cli.main import main
from radp.scenario.splits import open_split
from radp.scenario.store import ScenarioWriter

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    with ScenarioWriter(folder / "logs") as writer:
        writer.add(open_split("sumo14-val")[0])
    options = ["--stride", "15", "--workers", "1"]
    assert (
        main(["data", "samples", "--scenarios", f"{folder / 'logs'}", "--out", f"{folder / 'samples'}", *options]) == 0
    )
    return folder / "samples"


def train(samples: Path, out: Path) -> list[str]:
    options = {"--data": samples, "--out": out, "--steps": 14, "--batch": 4, "--save-every": 3, "--threads": 1}
    words = [str(word) for pair in options.items() for word in pair]
    return [sys.executable, "-m", "radp.cli.main", "train", "base", *words]


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model" / "model.safetensors")


def test_a_killed_training_ends_with_the_same_weights(samples, tmp_path):
    subprocess.run(train(samples, tmp_path / "whole"), check=True, env=ONE_THREAD)
    process = subprocess.Popen(train(samples, tmp_path / "killed"), env=ONE_THREAD)
    state = tmp_path / "killed" / "state"
    while not list(state.glob("step_*.pt")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was over before it could be killed"
    subprocess.run(train(samples, tmp_path / "killed"), check=True, env=ONE_THREAD)
    whole, resumed = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


SHARED = '''
import sys, torch
from torch import nn
from radp.runs.folder import RunFolder
from radp.training.loop import fit, is_main_process, shuffled_rows
from radp.training.settings import LoopConfig

class Task:
    """A linear map without noise: two halves of a batch must give what the whole batch gives."""
    memory = None
    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.data = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
        self.processes = 0
    def batch(self, step, rank, processes):
        self.processes = processes
        share = 10 // processes
        return self.data[shuffled_rows(40, 10, step, 3)[rank * share : (rank + 1) * share]]
    def loss(self, model, batch, generator):
        return (model(batch) - batch.sum(-1, keepdim=True)).square().mean(), {}
    def validate(self, model, step):
        return {}

task, config = Task(), LoopConfig(steps=12, batch=10, lr=0.01, warmup=2, save_every=5, validate_every=10)
model = fit(task, config, RunFolder.create(sys.argv[1], "toy", {}))
if is_main_process():
    torch.save({"processes": torch.tensor(task.processes), **model.state_dict()}, sys.argv[2])
'''


def launch(*words: str) -> None:
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    environment = {**ONE_THREAD, "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run([*command, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_two_processes_take_the_steps_that_one_takes(tmp_path):
    script = tmp_path / "toy.py"
    script.write_text(SHARED)
    one, two = tmp_path / "one.pt", tmp_path / "two.pt"
    subprocess.run([sys.executable, str(script), str(tmp_path / "run1"), str(one)], check=True, env=ONE_THREAD)
    launch(str(script), str(tmp_path / "run2"), str(two))
    alone, shared = torch.load(one, weights_only=True), torch.load(two, weights_only=True)
    assert int(alone.pop("processes")) == 1 and int(shared.pop("processes")) == 2
    for name, value in alone.items():
        torch.testing.assert_close(shared[name], value, atol=1e-6, rtol=1e-5)


def test_the_command_trains_in_two_processes(samples, tmp_path):
    launch("--module", *train(samples, tmp_path / "launched")[2:])
    steps = [json.loads(line)["step"] for line in (tmp_path / "launched" / "log.jsonl").read_text().splitlines()]
    assert steps == [14, 14], "the training row and the validation row of the last step, written once"
    own = subprocess.run([*train(samples, tmp_path / "own"), "--processes", "2"], env=ONE_THREAD, capture_output=True)
    assert own.returncode == 0 and own.stdout.decode().split() == [str(tmp_path / "own" / "model")]
    launched, shared = weights(tmp_path / "launched"), weights(tmp_path / "own")
    assert all(torch.equal(launched[name], shared[name]) for name in launched), "--processes is accelerate launch"


def test_switches_change_the_preset(samples, tmp_path, capsys):
    words = [*train(samples, tmp_path / "run")[3:], "--stop-after", "1", "--switches"]
    assert main([*words, "route_tokens=false", "near_horizon_s=null", "polyline_encoder=mixer"]) == 0
    model = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]["model"]
    assert (model["route_tokens"], model["near_horizon_s"], model["polyline_encoder"]) == (False, None, "mixer")
    for wrong, message in (
        ("route_tokens", "no NAME=VALUE"),
        ("depth=3", "unknown settings depth"),
        ("polyline_encoder=flt", "expected one of mixer, flat"),
        ("hidden=wide", 'hidden is "wide", expected something like 120'),
        ("route_tokens=1", "expected something like true"),
    ):
        assert main([*words, wrong]) == 2
        assert message in capsys.readouterr().err


def test_what_is_wrong_in_a_process_is_reported_in_one_sentence(samples, tmp_path, capfd):
    words = train(samples, tmp_path / "run")[3:]
    assert main([*words, "--batch", "5", "--processes", "2"]) == 2
    assert main([*words, "--batch", "4000", "--processes", "2"]) == 2
    errors = [line for line in capfd.readouterr().err.splitlines() if line.startswith("radp: ")]
    assert "cannot be shared by 2" in errors[0] and "fewer than one batch of 4000" in errors[1]
