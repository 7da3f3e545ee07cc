"""The doctor counts nuPlan's logs, maps and benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radp.cli.main import main
from radp.sources.nuplan.inventory import benchmark_of, find_filters, take_stock
from tests.sources.nuplan.made_files import CITY, frame_token, make_log

pytest.importorskip("yaml")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_log(tmp_path / "data" / "val" / "a.db", [(1000, "changing_lane"), (1400, "changing_lane")], box_step=200)
    (tmp_path / "data" / "test").mkdir()
    (tmp_path / "data" / "test" / "b.db").write_bytes(b"broken" * 100)
    (tmp_path / "maps" / CITY / "9").mkdir(parents=True)
    (tmp_path / "maps" / CITY / "9" / "map.gpkg").touch()
    monkeypatch.setenv("NUPLAN_DATA_ROOT", str(tmp_path / "data"))
    monkeypatch.setenv("NUPLAN_MAPS_ROOT", str(tmp_path / "maps"))
    return tmp_path


def filter_file(path: Path) -> Path:
    tokens = [frame_token("a", 1000), "0" * 16, "1" * 16]
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"scenario_types: [changing_lane]\nscenario_tokens: {tokens}\n")
    return path


def test_counts_against_the_benchmark(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = filter_file(root / "val14_split.yaml")
    main(["doctor", "--filters", str(file), "--json"])
    stock = json.loads(capsys.readouterr().out)["nuplan"]
    assert stock["logs"] == {"test": 1, "val": 1}
    assert stock["maps"][CITY] == "9"
    (entry,) = stock["benchmarks"]
    assert (entry["benchmark"], entry["expected"], entry["found"], entry["missing"]) == ("val14", 1118, 1, 2)
    assert len(entry["problems"]) == 1


def test_names_what_is_missing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    said = capsys.readouterr().out
    assert "nuplan    logs: 1 in test, 1 in val" in said
    assert "missing sg-one-north, us-nv-las-vegas-strip, us-pa-pittsburgh-hazelwood" in said
    assert "no filter files" in said
    filter_file(root / "data" / "filters" / "test14-hard.yaml")
    main(["doctor"])
    said = capsys.readouterr().out
    assert "test14-hard: 1 of 272 scenarios" in said
    assert "2 tokens are in none of the logs" in said


def test_names_of_benchmarks(tmp_path: Path) -> None:
    names = {"val14": "val14", "val14_split": "val14", "reduced_val14_split": "reduced-val14", "other": None,
             "test14-random": "test14-random", "test14_hard": "test14-hard"}  # fmt: skip
    assert {stem: benchmark_of(Path(f"{stem}.yaml")) for stem in names} == names
    (tmp_path / "notes.yaml").touch()
    assert find_filters(tmp_path) == []
    assert find_filters(tmp_path, [tmp_path / "notes.yaml"]) == [tmp_path / "notes.yaml"]


def test_nothing_there(tmp_path: Path) -> None:
    stock = take_stock(tmp_path / "no", tmp_path / "no")
    assert stock["logs"] == {}
    assert not any(stock["maps"].values())


def test_bad_filter_is_a_problem(root: Path) -> None:
    bad = root / "val14.yaml"
    bad.write_text("colour: blue\n")
    (entry,) = take_stock(root / "data", root / "maps", [bad])["benchmarks"]
    assert entry["found"] == 0
    assert "unknown keys colour" in entry["problems"][0]
