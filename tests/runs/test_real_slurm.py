"""A real SLURM cluster of two nodes on this machine: one of them is killed, a job is preempted, nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from radp.runs.journal import maps_of
from tests.runs.made_pieces import begun, wait_until
from tests.runs.two_node_slurm import kill_node, two_nodes, why_not

pytest.importorskip("submitit")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]
PIECES = 8
DRIVER = f"""
import sys
from functools import partial
from pathlib import Path
from radp.runs.engine import Engine, use_engine
from radp.runs.json_text import json_text
from radp.runs.parallel import parallel_map
from tests.runs.made_pieces import slow_square
folder = Path(sys.argv[1])
with use_engine(Engine("slurm", slurm=("mem=100M", "signal_delay_s=5"))):
    out = parallel_map(partial(slow_square, folder, 2.0), range({PIECES}), workers=2, folder=folder)
print(json_text([list(out.results.items()), len(out.failures)], indent=None))
"""


@pytest.fixture
def cluster() -> Iterator[tuple[Path, dict[str, str]]]:
    with (
        tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder,
        two_nodes(Path(folder)) as environment,
    ):
        yield Path(folder), environment


def start(out: Path, environment: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(out)], env=environment, stdout=subprocess.PIPE, text=True
    )


def check(process: subprocess.Popen, out: Path) -> None:
    said, _ = process.communicate(timeout=600)
    assert json.loads(said) == [[[i, i * i] for i in range(PIECES)], 0]
    assert sorted(path.name for path in out.glob("[!.]*.txt")) == [f"{i}.txt" for i in range(PIECES)]
    (journal,) = maps_of(out)
    assert journal["done"] == PIECES and not journal["again"]


def test_a_killed_node_costs_nothing(cluster, tmp_path):
    folder, environment = cluster
    process = start(tmp_path, environment)
    wait_until(lambda: len({pid for pids in begun(tmp_path).values() for pid in pids}) == 2)
    kill_node(folder, "node2")
    check(process, tmp_path)
    assert "node1" in maps_of(tmp_path)[0]["nodes"]
    assert sum(len(pids) for pids in begun(tmp_path).values()) > PIECES, "what was under way was begun again"


def test_a_preempted_job_is_put_back_and_goes_on(cluster, tmp_path):
    _, environment = cluster
    process = start(tmp_path, environment)
    wait_until(lambda: len({pid for pids in begun(tmp_path).values() for pid in pids}) == 2)
    ids = subprocess.run(["squeue", "-h", "-r", "-o", "%i"], env=environment, capture_output=True, text=True)
    subprocess.run(["scancel", "--signal=USR2", ids.stdout.split()[0]], env=environment, check=True)
    check(process, tmp_path)
    assert {"node1", "node2"} >= set(maps_of(tmp_path)[0]["nodes"])
