"""Results that nuplan-devkit wrote: our aggregation gives every score that stands in them."""

from __future__ import annotations

import json

import pytest

from radp.cli.main import main
from radp.metrics.metric import NO_VALUE, Metric
from radp.metrics.score import METRICS, aggregate
from radp.runs.errors import BadInput
from radp.sources.nuplan.results import read_results
from tests.shared_data import shared_files, shared_params

pytest.importorskip("pyarrow")


def metrics_of(card):
    values = {name: card["metrics"][name]["value"] for name in METRICS}
    return {name: NO_VALUE if value is None else Metric(value) for name, value in values.items()}


@pytest.mark.golden
@pytest.mark.parametrize(
    "path",
    shared_params("golden/nuplan_results/**/*aggregated_metrics.csv")
    + shared_params("golden/nuplan_results/**/aggregator_metric*.parquet"),
)
def test_our_aggregation_gives_the_written_scores(path):
    results = read_results(path)
    assert results.cards
    for card in results.cards:
        assert aggregate(metrics_of(card)) == pytest.approx(card["score"], abs=1e-12)
    final = [row for row in results.totals if row["scenario"] == "final_score"]
    assert len(final) == 1
    mean = sum(card["score"] for card in results.cards) / len(results.cards)
    assert mean == pytest.approx(final[0]["score"], abs=1e-9)


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params("golden/nuplan_results/*all_results.parquet"))
def test_tables_of_means_alone(path):
    results = read_results(path)
    assert not results.cards
    assert all(0.0 <= row["score"] <= 1.0 for row in results.totals)


@pytest.mark.golden
@pytest.mark.parametrize("aggregator", shared_params("golden/nuplan_results/**/aggregator_metric*.parquet"))
def test_metric_files_give_the_card_of_the_aggregator(aggregator):
    (card,) = read_results(aggregator.parent).cards
    (written,) = read_results(aggregator).cards
    assert card["score"] == pytest.approx(written["score"], abs=1e-12)
    assert (card["token"], card["kind"], card["planner"]) == (written["token"], written["kind"], written["planner"])
    for name in METRICS:
        assert card["metrics"][name]["value"] == pytest.approx(written["metrics"][name]["value"], abs=1e-12)


@pytest.mark.golden
@pytest.mark.skipif(not shared_files("golden/nuplan_results/*.csv"), reason="skipped: no shared data")
def test_score_shows_them(capsys):
    paths = shared_files("golden/nuplan_results/*aggregated_metrics.csv")
    assert main(["score", "--quiet", str(paths[0])]) == 0
    assert "no_ego_at_fault_collisions" in capsys.readouterr().out


def test_another_table_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="expected columns scenario, planner_name and score"):
        read_results(tmp_path / "a.csv")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(BadInput, match="not a readable table"):
        read_results(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("scenario,planner_name,score,scenario_type\na,p,inf,x", "score is inf, expected 0 to 1"),
        ("scenario,planner_name,score,scenario_type\na,p,-0.5,x", "score is -0.5, expected 0 to 1"),
        ("scenario,planner_name,score,scenario_type\na,p,much,x", "could not convert"),
        ("scenario,planner_name,score\na,p,1.0", "'scenario_type' is missing"),
    ],
)
def test_tables_with_values_that_are_no_scores_are_refused(tmp_path, lines, words):
    (tmp_path / "t.csv").write_text(f"{lines}\n")
    with pytest.raises(BadInput, match=words):
        read_results(tmp_path / "t.csv")


def test_a_table_that_stands_for_gigabytes_is_refused(tmp_path, monkeypatch):
    """A page that names one long text many times."""
    import pyarrow
    import pyarrow.parquet

    count, text = 3000, pyarrow.array(["x" * 1000])
    names = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * count), text)
    table = pyarrow.table({"scenario": names, "planner_name": names, "score": [1.0] * count})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 20_000
    monkeypatch.setattr("radp.sources.nuplan.results.MOST_BYTES", 1 << 20)
    with pytest.raises(BadInput, match=r"it would fill [0-9]+ bytes, expected at most 1048576"):
        read_results(tmp_path / "t.parquet")


def test_names_of_a_table_do_not_steer_the_terminal(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("scenario,planner_name,score,scenario_type\na,\x1b[31mp,0.5,x\n")
    assert main(["score", str(tmp_path / "t.csv")]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_means_without_scenarios_are_shown_and_are_json(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(
        "scenario,planner_name,score,num_scenarios,model\nfinal_score,p,0.5,261,m\nfinal_score,p,0.25,261,n\n"
    )
    assert main(["score", str(tmp_path / "t.csv"), "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == ["p  m  n 261  score 0.5000", "p  n  n 261  score 0.2500"]
    assert main(["score", str(tmp_path / "t.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["score"] for row in found["means"]] == [0.5, 0.25] and not found["drives"]


def test_a_text_table_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("scenario,planner_name,score,scenario_type\na,p,0.5,x\n" * 2)
    monkeypatch.setattr("radp.storage.unpacking.MOST_CSV_BYTES", 60)
    with pytest.raises(BadInput, match="it holds more than 0 MB"):
        read_results(tmp_path / "t.csv")
