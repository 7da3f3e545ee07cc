import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

from radp.cli.main import main
from radp.scenario import Scenario
from radp.scenario.splits import open_split
from radp.scenario.store import ScenarioStore, ScenarioWriter
from radp.sources.synthetic import make_scenario
from tests.small_scenarios import small_scenario


@pytest.fixture
def store(tmp_path):
    with ScenarioWriter(tmp_path / "store", rows_per_shard=2) as writer:
        for i in range(3):
            writer.add(small_scenario(f"s {i}", kind=("turning", "following")[i % 2]))
    return tmp_path / "store"


def test_info_of_a_store(capsys, store):
    assert main(["data", "info", str(store), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    size = facts.pop("bytes_per_scenario")
    assert 500 < size < 20_000
    assert facts == {
        "scenarios": 3, "kinds": {"following": 1, "turning": 2}, "sources": {"hand": 3}, "maps": 1, "problems": [],
        "missing": 0,
    }  # fmt: skip


def test_info_tells_of_broken_files(capsys, store):
    (store / "scenarios-00001.arrow").write_bytes(b"?")
    assert main(["data", "info", str(store)]) == 2
    out = capsys.readouterr().out
    assert "2 scenarios" in out and "problem: " in out and "scenarios-00001.arrow" in out
    assert "missing: 1 scenarios" in out
    assert main(["data", "info", str(store), "--allow-missing"]) == 0


def cut(file):
    """As a copy that was stopped leaves it."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.fixture
def long_drives(tmp_path):
    """A store of four drives, long enough for samples, two in each shard; the second shard is cut."""
    with ScenarioWriter(tmp_path / "long", rows_per_shard=2) as writer:
        for seed in range(4):
            writer.add(make_scenario(seed, 2, frames=84))
    cut(tmp_path / "long" / "scenarios-00001.arrow")
    return tmp_path / "long"


SAMPLES = ["data", "samples", "--workers", "1", "--scenarios"]
SIMULATE = ["simulate", "--planner", "constant_velocity", "--agents", "nonreactive", "--scenarios"]


@pytest.mark.parametrize(
    "command", [SIMULATE, ["export", "json"], ["data", "samples", "--workers", "1", "--scenarios"]]
)
def test_whoever_reads_an_incomplete_store_learns_it(capsys, long_drives, tmp_path, command):
    arguments = [*command, str(long_drives), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "is incomplete: " in error and "scenarios-00001.arrow" in error and "2 of 4 scenarios can be read" in error
    assert "Traceback" not in error and not (tmp_path / "out").exists()
    assert main([*arguments, "--allow-missing"]) == 0
    printed = capsys.readouterr()
    assert "2 of 4 scenarios can be read; going on with these" in printed.err
    if command is SIMULATE:
        assert "missing: 2 scenarios are not among" in printed.out
        assert json.loads((tmp_path / "out" / "summary.json").read_text())["missing"] == 2
        assert main(["score", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("command", [SIMULATE, ["export", "json"]])
def test_tokens_longer_than_a_file_name(capsys, tmp_path, command):
    tokens = ["x" * 300, "x" * 299 + "y", "ü" * 200]
    with ScenarioWriter(tmp_path / "store") as writer:
        for token in tokens:
            writer.add(replace(make_scenario(0, 2, frames=16), token=token))
    assert main([*command, str(tmp_path / "store"), "--out", str(tmp_path / "out")]) == 0
    if command is SIMULATE:
        assert ", 0 failed" in capsys.readouterr().out and len(list((tmp_path / "out" / "drives").iterdir())) == 3
    else:
        assert sorted(open_split(tmp_path / "out").tokens()) == sorted(tokens)


def test_a_drive_that_cannot_be_written_ends_the_run(capsys, store, tmp_path, monkeypatch):
    write = Path.write_bytes

    def full(path, data):
        if path.suffix == ".drive":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    assert main([*SIMULATE, str(store), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert ".drive cannot be written (No space left on device)" in error and "Traceback" not in error
    monkeypatch.undo()
    assert main([*SIMULATE, str(store), "--out", str(tmp_path / "out")]) == 0  # with space again, the run goes on


def test_list(capsys):
    assert main(["data", "list", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"splits", "models"}
    assert main(["data", "list"]) == 0


def test_a_split_without_a_recipe_is_refused(capsys):
    assert main(["data", "make-split", "sumo14-nothing"]) == 2
    assert "no recipe for 'sumo14-nothing'; there are sumo14-dev, sumo14-hard-xl" in capsys.readouterr().err


def test_export_writes_files_that_open_as_a_split(capsys, store, tmp_path):
    out = tmp_path / "out"
    assert main(["export", "json", str(store), "--out", str(out), "--limit", "2"]) == 0
    assert sorted(file.name for file in out.iterdir()) == ["s_0.json.gz", "s_1.json.gz"]
    assert open_split(out).tokens() == ["s 0", "s 1"]
    assert main(["data", "info", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out.split("\n", 1)[1])
    assert facts["kinds"] == {"following": 1, "turning": 1}


def test_export_does_not_write_one_file_twice(capsys, store, tmp_path):
    with ScenarioWriter(store) as writer:
        writer.add(small_scenario("s_0"))
    assert len(ScenarioStore.open(store)) == 4
    assert main(["export", "json", str(store), "--out", str(tmp_path / "out"), "--compress", "no"]) == 2
    assert "'s 0' and 's_0' would both be written" in capsys.readouterr().err


def test_bench_without_its_part_is_refused(capsys, monkeypatch):
    from radp.cli import bench

    monkeypatch.setitem(bench.BENCHES, "sim", ("radp.runs.folder:no_such_bench",))
    assert main(["bench", "sim"]) == 2
    assert "no radp.runs.folder.no_such_bench" in capsys.readouterr().err


def test_bench_merges_figures(capsys, monkeypatch):
    from radp.cli import bench

    figures = {"a:b": {"steps_per_s": {"1": 2.0}}, "c:d": {"ms": 3}}
    monkeypatch.setitem(bench.BENCHES, "sim", tuple(figures))
    monkeypatch.setattr(bench, "_bench_function", lambda place: lambda: figures[place])
    assert main(["bench", "sim", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"steps_per_s": {"1": 2.0}, "ms": 3}
    assert main(["bench", "sim"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [["steps_per_s"], ["1", "2"], ["ms", "3"]]


def test_info_tells_of_wrong_content(capsys, store, monkeypatch):
    with monkeypatch.context() as unchecked:
        unchecked.setattr(Scenario, "validate", lambda self: None)
        with ScenarioWriter(store) as writer:
            wrong = small_scenario("wrong")
            writer.add(replace(wrong, time_us=wrong.time_us * 10_000))
    assert main(["data", "info", str(store)]) == 2
    out = capsys.readouterr().out
    assert "scenario 'wrong' cannot be read" in out and "time_us goes on by" in out and "missing: 1 scenarios" in out
