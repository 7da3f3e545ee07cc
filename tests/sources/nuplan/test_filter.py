"""Scenario filters as the community writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from radp.sources.convert import SourceError
from radp.sources.nuplan.filter import ScenarioFilter, read_filter

pytest.importorskip("yaml")
HEAD = "_target_: nuplan.planning.scenario_builder.scenario_filter.ScenarioFilter\n_convert_: 'all'\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenario_filter" / "some.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEAD + text)
    return path


def test_reads_a_benchmark_of_tokens(tmp_path: Path) -> None:
    found = read_filter(written(tmp_path, """
scenario_types:
  - changing_lane
  - behind_long_vehicle
scenario_tokens: # unquoted ones may look like numbers
  - '88aa2ad613205556'
  - 1234567890123456
  - 12345678901234e5
  - [some_log, a36c1b943871552A]
log_names: null
map_names: null
num_scenarios_per_type: null
limit_total_scenarios: null
timestamp_threshold_s: 15 # seconds
ego_displacement_minimum_m: null
expand_scenarios: null
remove_invalid_goals: true
shuffle: false
"""))  # fmt: skip
    assert found == ScenarioFilter(
        scenario_types=("changing_lane", "behind_long_vehicle"),
        scenario_tokens=("88aa2ad613205556", "1234567890123456", "12345678901234e5", "a36c1b943871552a"),
        timestamp_threshold_s=15.0,
        remove_invalid_goals=True,
    )


def test_counts_and_shares(tmp_path: Path) -> None:
    found = read_filter(
        written(tmp_path, "num_scenarios_per_type: 20\nlimit_total_scenarios: 0.25\nmap_names: [a, b]\n")
    )
    assert (found.num_scenarios_per_type, found.limit_total_scenarios, found.map_names) == (20, 0.25, ("a", "b"))
    whole = read_filter(written(tmp_path, "limit_total_scenarios: 7\n")).limit_total_scenarios
    assert whole == 7
    assert isinstance(whole, int)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("colour: blue\nsize: null\n", "unknown keys colour, size"),
        ("expand_scenarios: true\n", "cannot be driven"),
        ("ego_route_radius: 10\n", "ego_route_radius"),
        ("scenario_tokens: [xyz]\n", "'xyz' is no token"),
        ("scenario_tokens: 17\n", "expected a list of tokens"),
        ("num_scenarios_per_type: 0\n", "num_scenarios_per_type"),
        ("limit_total_scenarios: 1.5\n", "neither a count nor a share"),
        ("shuffle: perhaps\n", "neither true nor false"),
        ("timestamp_threshold_s: soon\n", "timestamp_threshold_s"),
        ("scenario_types: {a: b}\n", "expected a list of names"),
        ("log_names: ${splitter.log_splits.test}\n", "put the devkit's splitter"),
        ("a: [\n", "not a readable YAML file"),
    ],
)
def test_one_sentence_for_what_cannot_be_followed(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_filter(written(tmp_path, text))
    assert sentence in str(caught.value)
    assert "some.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_not_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text("- a\n")
    with pytest.raises(SourceError, match="expected a mapping"):
        read_filter(path)
    with pytest.raises(SourceError, match="not a readable YAML"):
        read_filter(tmp_path / "absent.yaml")


def test_log_names_of_the_splitter(tmp_path: Path) -> None:
    (tmp_path / "splitter").mkdir()
    (tmp_path / "splitter" / "nuplan.yaml").write_text("log_splits:\n  test: [one, two]\n  val:\n    - three\n")
    path = written(tmp_path, "log_names: ${splitter.log_splits.test}\n")
    assert read_filter(path).log_names == ("one", "two")
    with pytest.raises(SourceError, match="no list 'train'"):
        read_filter(written(tmp_path, "log_names: ${splitter.log_splits.train}\n"))
