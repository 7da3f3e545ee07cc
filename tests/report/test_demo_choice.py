"""The rule that chooses the demo's scenarios, on made score cards."""

from __future__ import annotations

from typing import Any

from radp.report.demo_choice import choose_demo


def card(token: str, score: float, collided: bool = False, progress: float = 1.0, kind: str = "") -> dict[str, Any]:
    values = {"no_ego_at_fault_collisions": 0.0 if collided else 1.0, "ego_progress_along_expert_route": progress}
    metrics = {name: {"value": value} for name, value in values.items()}
    return {"token": token, "kind": kind or token, "score": score, "failure": None, "metrics": metrics}


def test_each_group_has_its_best_case() -> None:
    ours = [
        card("saved most", 0.95), card("saved less", 0.6), card("saved least", 0.5), card("slow", 0.8, progress=0.5),
        card("crash", 0.0, collided=True), card("lesser crash", 0.1, collided=True), card("usual", 0.85),
        card("perfect", 1.0),
    ]  # fmt: skip
    base = [
        card("saved most", 0.0, True), card("saved less", 0.0, True), card("saved least", 0.0, True), card("slow", 0.9),
        card("crash", 0.9), card("lesser crash", 0.9), card("usual", 0.8), card("perfect", 1.0),
    ]  # fmt: skip
    chosen = choose_demo(ours, base)
    assert [(one.token, one.why) for one in chosen[:4]] == [
        ("saved most", "the rules saved it"),
        ("saved less", "the rules saved it"),
        ("slow", "the rules cost progress"),
        ("crash", "it fails"),
    ]
    # The median of ours is 0.7: 0.6, 0.8 are taken, so 0.85 and then 0.5 are the nearest.
    assert [one.token for one in chosen[4:]] == ["usual", "saved least"]


def test_no_kind_twice_while_another_is_left() -> None:
    ours = [card(f"s{i}", 0.9 - 0.01 * i, kind="turn" if i < 3 else "stop") for i in range(4)]
    base = [card(f"s{i}", 0.0, True, kind="turn" if i < 3 else "stop") for i in range(4)]
    assert [one.token for one in choose_demo(ours, base, 2)] == ["s0", "s3"]


def test_what_a_group_lacks_is_filled_up() -> None:
    cards = [card(f"s{i}", 1.0) for i in range(8)]
    chosen = choose_demo(cards, cards)
    assert len({one.token for one in chosen}) == 6
    assert {one.why for one in chosen} == {"as usual"}
    assert choose_demo([], []) == []
