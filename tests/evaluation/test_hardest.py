from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from radp.evaluation.hardest import lowest, write_selection
from radp.metrics.card import read_cards
from radp.runs.errors import BadInput
from radp.scenario.splits import open_split
from radp.scenario.store import ScenarioStore, ScenarioWriter
from tests.small_scenarios import small_scenario


def test_the_lowest_of_each_kind_in_the_given_order() -> None:
    rows = [("a", "x", 0.9), ("b", "x", 0.1), ("c", "y", 1.0), ("d", "x", 0.5), ("e", "y", 1.0), ("f", "y", 1.0)]
    assert lowest(rows, 2) == ["b", "c", "d", "e"]
    assert lowest(rows, 9) == ["a", "b", "c", "d", "e", "f"]


def test_a_selection_is_a_store_with_a_card(tmp_path: Path) -> None:
    scenarios = [replace(small_scenario(token), tags={"network": "n", "hazard": "jaywalker"}) for token in "abc"]
    with ScenarioWriter(tmp_path / "pool") as writer:
        for scenario in scenarios:
            writer.add(scenario)
    card = write_selection(open_split(str(tmp_path / "pool")), ["c", "a"], tmp_path / "hard")
    assert ScenarioStore.open(tmp_path / "hard").tokens() == ["a", "c"]
    assert (card.scenarios, card.with_hazard, card.hazards) == (2, 2, {"jaywalker": 2})
    with pytest.raises(BadInput, match="already"):
        write_selection(open_split(str(tmp_path / "pool")), ["c"], tmp_path / "hard")


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"token": 1}', '{"token": "a", "kind": "k", "score": "x", "metrics": {}}', "\\xff"]
)
def test_cards_that_others_changed_are_refused(tmp_path, text):
    (tmp_path / "cards.jsonl").write_text(text + "\n")
    with pytest.raises(BadInput, match=r"cards\.jsonl: not a readable list of score cards"):
        read_cards(tmp_path)
    with pytest.raises(BadInput, match="is not finished"):
        read_cards(tmp_path / "nowhere")
