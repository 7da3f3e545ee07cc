"""Drives of different length: each card says its own, the summary the range."""

from __future__ import annotations

import numpy as np
import pytest

from radp.metrics.card import card_text, score_card
from radp.metrics.score import evaluate_many
from radp.metrics.summary import summarise, summary_text
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import drive_on


def test_scores_say_the_length() -> None:
    street = patches([box_lane("A", (-50, 200, -2, 2), limit=8.0)], drivable=((-50, 200, -2, 2),))
    drives = [drive_on(street, np.array([[0.5 * k, 0.0, 0.0] for k in range(n)])) for n in (81, 31)]
    cards = [score_card(score) for score in evaluate_many(drives)]
    assert [card["seconds"] for card in cards] == pytest.approx([8.0, 3.0])
    assert card_text(cards[0]).splitlines()[0].endswith("  8.0 s")
    summary = summarise(cards)
    assert summary["seconds"] == {"least": pytest.approx(3.0), "most": pytest.approx(8.0)}
    assert "3.0 to 8.0 s long" in summary_text(summary)
