"""The report: tables beside the paper's numbers, pictures by rule, and a small reproduction from start to end."""

from __future__ import annotations

import re

import numpy as np
import pytest

from radp.cli.main import main
from radp.evaluation.planners import COLUMNS, Row
from radp.evaluation.settings import ReportScope
from radp.report import paper
from radp.report.document import Section, write_report
from radp.report.reproduction import chosen_setup, run_stages, spread
from radp.report.result_tables import (
    ablation_table,
    direction,
    direction_table,
    nonreactive_table,
    overview_table,
    performance_table,
)
from radp.report.table import Table, percent
from radp.runs.errors import BadInput
from radp.scenario.store import ScenarioStore, ScenarioWriter
from radp.sources.synthetic import make_scenario
from radp.statistics.estimate import Estimate


def row(planner: str, level: float, agents: str = "reactive", split: str = "sumo14-val") -> Row:
    draw = np.random.default_rng(0).random(100) * 0.1
    return Row(split, agents, planner, dict.fromkeys(COLUMNS, level + draw))


def test_small_shares_keep_their_digits():
    assert percent(0.00013) == "0.013%" and percent(0.4931) == "49.31%"


def test_the_performance_table_has_both_benchmarks_and_the_difference():
    text = performance_table([row("base", 0.5), row("ours", 0.6)], "base", "ours", "scope").markdown()
    assert "| sumo14-val | ours: difference | +10.0 [+10.0, +10.0]" in text
    assert "| nuPlan val14 | RADP (paper) | 81.37 | 94.01 | 89.53 | 98.03 | - | - | 94.90 |" in text
    assert "| nuPlan val14 | paper: difference | -1.33 | +1.03 |" in text and "levels are not" in text


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        (1.0, Estimate(0.1, 0.05, 0.2, 9), "paper up, ours up: same"),
        (-1.0, Estimate(0.1, 0.05, 0.2, 9), "paper down, ours up: not the same"),
        (1.0, Estimate(0.1, -0.05, 0.2, 9), "paper up, ours no difference shown"),
    ],
)
def test_directions(theirs, ours, words):
    assert direction(theirs, ours) == words


def test_missing_variants_are_named_and_scope_stands_under_every_table():
    ablation = ablation_table([row("ours", 0.6)], {"No normalization": "", "RADP": "ours"}, "ours", "SCOPE")
    assert "ours: No normalization | not packaged" in ablation.markdown()
    others = (
        overview_table([row("ours", 0.6)], "SCOPE"),
        nonreactive_table([row("a", 0.5), row("b", 0.6)], "a", "b", "SCOPE"),
    )
    assert all("SCOPE" in table.markdown() for table in (ablation, *others))
    assert "| nuPlan | PLUTO (paper) | 78.11 |" in others[0].markdown()


def test_the_other_learned_planners_may_be_left_out():
    whole, short = chosen_setup(ReportScope()), chosen_setup(ReportScope(others=False))
    assert whole.trained and not short.trained
    assert set(whole.overview) - set(short.overview) == set(whole.trained)
    assert (short.base, short.ours, short.scenarios) == (whole.base, whole.ours, None)
    assert chosen_setup(ReportScope(quick=True)).intervention == ("collision",)


def test_every_table_has_as_many_cells_as_columns():
    rows = [row("base", 0.5), row("ours", 0.6)]
    tables = (
        performance_table(rows, "base", "ours", "scope"),
        direction_table(rows, "base", "ours", "scope"),
        ablation_table(rows, {"FFN-LoRA (no rules)": "base", "No normalization": "", "RADP": "ours"}, "ours", "scope"),
        nonreactive_table(rows, "base", "ours", "scope"),
        overview_table(rows, "scope"),
    )
    assert all(len(line) == len(table.header) for table in tables for line in table.rows)
    progress = tables[1].header.index("Progress")
    assert tables[1].rows[0][progress] == "paper down, ours up: not the same"  # the paper: 94.90 - 96.60


def test_the_papers_tables_are_whole():
    assert set(paper.METRICS) <= set(COLUMNS.values())
    assert all(len(v) == len(paper.METRICS) for results in paper.PERFORMANCE.values() for v in results.values())
    assert all(len(v) == len(paper.METRICS) for v in paper.ABLATION.values())
    assert set(paper.FIDELITY) == set(paper.NONREACTIVE) == set(paper.PERFORMANCE) == set(paper.SPLITS.values())
    assert paper.their_split("sumo14-hard") == "test14-hard" and paper.their_split("stores/val14") is None


def test_html_escapes_and_markdown_keeps_columns(tmp_path):
    table = Table("<t>", ("a|b",), (("x|<script>",),), ("note",))
    markdown, page = write_report(tmp_path, "Title", ["lead"], [Section("One", tables=(table,))])
    assert "x\\|<script>" in markdown.read_text()
    assert "<script>" not in page.read_text() and "&lt;script&gt;" in page.read_text()


def test_stages_go_on_when_one_is_refused():
    said, done = [], []

    def refuse() -> None:
        raise BadInput("no model")

    class Work:
        missing: list[str] = []  # noqa: RUF012

    run_stages(Work(), {"a": refuse, "b": lambda: done.append(1)}, said.append)
    assert done == [1] and Work.missing == ["a: no model"] and "[2/2] b" in said[-1]


def test_scenarios_are_spread_over_the_split(tmp_path):
    with ScenarioWriter(tmp_path / "all") as writer:
        for seed in range(5):
            writer.add(make_scenario(seed, agents=1, frames=12))
    whole = ScenarioStore.open(tmp_path / "all").tokens()
    assert ScenarioStore.open(spread(str(tmp_path / "all"), 3, tmp_path / "some")).tokens() == whole[::2]


def test_quick_takes_few_scenarios_and_says_so():
    setup = chosen_setup(ReportScope(quick=True, splits=("sumo14-val",)))
    assert setup.scenarios == 8 and "ONLY 8 SCENARIOS" in setup.scope()
    assert chosen_setup(ReportScope(splits=("sumo14-val",))).scope() == "Scenarios: all of each split."


@pytest.mark.slow
def test_a_small_reproduction_from_start_to_end_and_again(tmp_path, capsys):
    with ScenarioWriter(tmp_path / "test14-hard") as writer:
        for seed in range(2):
            writer.add(make_scenario(seed, agents=4, frames=61))
    out = tmp_path / "out"
    command = ["reproduce", "--quick", "--splits", str(tmp_path / "test14-hard"), "--base", "constant_velocity",
               "--ours", "idm", "--workers", "1", "--out", str(out)]  # fmt: skip
    assert main(command) == 0
    text = (out / "REPORT.md").read_text()
    for title in (
        "Closed-loop planning performance",
        "Overview of planners",
        "Temporal risk alignment",
        "Rule ablations",
        "non-reactive agents",
        "Rival predictors",
        "Intervention in control space",
        "Which rule presses on whom",
        "Head-teacher fidelity",
        "Controls that keep the clock",
        "plans driven for 2 s without replanning",
        "What teacher pressure adds",
    ):
        assert title in text
    assert "Left out: latency" in text and "Left out: faithfulness" in text  # idm is no model
    pictures = re.findall(r"\(figures/(.+)\.png\)", text)
    assert pictures and all((out / "figures" / f"{name}.svg").stat().st_size > 1000 for name in pictures)
    assert 'src="data:image/png' in (out / "report.html").read_text()
    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("*.drive")}
    assert main(command) == 0
    assert stamps == {path: path.stat().st_mtime_ns for path in out.rglob("*.drive")}
