"""Training under srun on a real SLURM cluster of two nodes: put back into the queue, it ends with the same weights."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from radp.cli.main import main
from tests.runs.made_pieces import wait_until
from tests.runs.two_node_slurm import two_nodes, why_not
from tests.training.test_processes import samples, train, weights

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]
SCRIPT = Path(__file__).parents[2] / "examples" / "train_slurm.sh"
STEPS = 40
LOOPBACK = {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo", "ACCELERATE_USE_CPU": "true"}

__all__ = ["samples"]  # the fixture


def test_a_training_that_was_requeued_ends_with_the_same_weights(samples, tmp_path):
    out, log = tmp_path / "requeued", tmp_path / "log"
    words = [*train(samples, out, STEPS)[1:]]
    with (
        tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder,
        two_nodes(Path(folder)) as cluster,
    ):
        environment = {**cluster, **LOOPBACK, "RADP": f"{sys.executable} -m radp.cli.main"}
        sbatch = ["sbatch", "--parsable", "--nodes=2", "--mem=900M", f"--output={log}", str(SCRIPT), *words]
        asked = subprocess.run(sbatch, env=environment, capture_output=True, text=True, check=True)
        wait_until(lambda: list((out / "state").glob("step_*.pt")), 900)
        assert not (out / "model").exists(), "it was over before it could be put back"
        subprocess.run(["scontrol", "requeue", asked.stdout.strip()], env=cluster, check=True)
        wait_until(lambda: (out / "model" / "model.safetensors").exists(), 900)
    assert main([*train(samples, tmp_path / "whole", STEPS), "--processes", "2"]) == 0
    expected, found = weights(tmp_path / "whole"), weights(out)
    assert expected.keys() == found.keys()
    # jobs and processes started here round differently, and 40 steps of AdamW make it larger: 8e-5 was seen
    assert all(torch.allclose(expected[name], found[name], rtol=0.0, atol=1e-3) for name in expected)
