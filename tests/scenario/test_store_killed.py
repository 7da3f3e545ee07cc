"""kill -9 at any moment leaves a store that opens, and a writer that goes on to the same bytes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from radp.scenario.store import ScenarioStore, ScenarioWriter, StoreError
from tests.small_scenarios import assert_same, small_scenario

COUNT = 64
TESTS = Path(__file__).parents[1]
WRITER = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from radp.scenario.store import ScenarioWriter
from tests.small_scenarios import small_scenario
writer = ScenarioWriter(sys.argv[1], rows_per_shard=4)
for i in range({COUNT}):
    if f"s{{i}}" not in writer:
        writer.add(small_scenario(f"s{{i}}", shift=float(i % 3)))
writer.close()
"""


def start_writer(path: Path) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path)])


def shards(path: Path) -> int:
    return len(list(path.glob("scenarios-*.arrow")))


@pytest.mark.parametrize("after", [1, 7])
def test_a_killed_writer_leaves_a_readable_store(tmp_path, after):
    path = tmp_path / "store"
    process = start_writer(path)
    while shards(path) < after:
        assert process.poll() is None, "the writer ended before it could be killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with pytest.raises(StoreError, match="what wrote it was stopped before the end; the same command goes on"):
        ScenarioStore.open(path)
    store = ScenarioStore.open(path, allow_missing=True)
    assert store.missing == 0 and len(store) % 4 == 0
    assert store.tokens() == [f"s{i}" for i in range(len(store))]
    for i, scenario in enumerate(store):
        assert_same(scenario, small_scenario(f"s{i}", shift=float(i % 3)))
    assert start_writer(path).wait() == 0
    with ScenarioWriter(tmp_path / "at once", rows_per_shard=4) as writer:
        for i in range(COUNT):
            writer.add(small_scenario(f"s{i}", shift=float(i % 3)))
    assert {f.name: f.read_bytes() for f in path.iterdir()} == {
        f.name: f.read_bytes() for f in (tmp_path / "at once").iterdir()
    }
