import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from radp.runs import claim
from radp.runs.claim import BOOKS, DRIVER, FolderTaken, claimed, driver_of, is_marked, mark_of
from radp.runs.errors import BadInput
from radp.runs.parallel import parallel_map
from tests.runs.made_pieces import square

HOLDER = """
import sys, time
from radp.runs.claim import claimed
with claimed(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(folder: Path) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_the_second_driver_is_told_so_and_a_killed_one_leaves_the_folder_free(tmp_path):
    out = tmp_path / "out"
    first = hold(out)
    said = driver_of(out)
    assert said is not None and said["process"] == first.pid
    with pytest.raises(FolderTaken, match=rf"out is being written by another command \(process {first.pid} on "):
        parallel_map(square, [1], folder=out)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert driver_of(out) is None
    assert parallel_map(square, [3], folder=out).results == {0: 9}
    assert not (out / BOOKS / DRIVER).exists()


def test_claims_are_nested_and_leave_nothing_where_nothing_was_done(tmp_path):
    with claimed(tmp_path / "new"), claimed(tmp_path / "new"):
        assert is_marked(tmp_path / "new", mark_of(tmp_path / "new"))
        assert not is_marked(tmp_path / "new", "another")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="is a file"), claimed(tmp_path / "file"):
        pass


def test_a_driver_on_another_machine_counts_while_it_gives_signs_of_life(tmp_path, monkeypatch):
    """Where locks do not reach from machine to machine, the signature does; untouched, it is of a dead one."""
    monkeypatch.setattr(claim, "LOOK_S", 0.02)
    file = tmp_path / BOOKS / DRIVER
    file.parent.mkdir()
    file.write_text(json.dumps({"host": "elsewhere", "process": 7, "mark": "m"}))
    stop = threading.Event()
    monkeypatch.setattr(claim, "BEAT_S", 0.05)
    beat = threading.Thread(target=claim._beat, args=(file, stop))
    beat.start()
    with pytest.raises(FolderTaken, match="process 7 on elsewhere"), claimed(tmp_path):
        pass
    stop.set()
    beat.join()
    monkeypatch.setattr(claim, "SILENCE_S", 0.2)
    with claimed(tmp_path):
        pass
