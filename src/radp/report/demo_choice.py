"""Which scenarios the demo shows: chosen by a written rule from the score cards of two planners, none by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RULE = (
    "Of all scenarios that both planners drove: two in which the base collides at its fault and ours does not, by the "
    "largest gain in score; one in which neither collides and ours makes less progress, by the largest loss; one in "
    "which ours collides at its fault, by the lowest score; and the two whose score is nearest to the median of ours. "
    "No kind twice while another is left; what a group lacks is taken from the last one."
)
COLLISION, PROGRESS = "no_ego_at_fault_collisions", "ego_progress_along_expert_route"
LEAST_LOSS = 0.02  # of progress


@dataclass(frozen=True)
class Choice:
    """A scenario and why it is shown."""

    token: str
    kind: str
    why: str


@dataclass(frozen=True)
class _Pair:
    token: str
    kind: str
    ours: Mapping[str, Any]
    base: Mapping[str, Any]

    def value(self, who: str, metric: str) -> float:
        found = getattr(self, who)["metrics"][metric]["value"]
        return 1.0 if found is None else float(found)

    def collides(self, who: str) -> bool:
        return getattr(self, who)["failure"] is None and self.value(who, COLLISION) < 1.0

    @property
    def gain(self) -> float:
        return self.ours["score"] - self.base["score"]

    @property
    def loss_of_progress(self) -> float:
        return self.value("base", PROGRESS) - self.value("ours", PROGRESS)


def choose_demo(ours: Sequence[Mapping[str, Any]], base: Sequence[Mapping[str, Any]], count: int = 6) -> list[Choice]:
    """Score cards of both planners -> at most `count` scenarios, as RULE says."""
    known = {card["token"]: card for card in base}
    pairs = [_Pair(c["token"], c["kind"], c, known[c["token"]]) for c in ours if c["token"] in known]
    median = float(np.median([pair.ours["score"] for pair in pairs])) if pairs else 0.0
    groups: list[tuple[int, str, Callable[[_Pair], bool], Callable[[_Pair], float]]] = [
        (2, "the rules saved it", lambda p: p.collides("base") and not p.collides("ours"), lambda p: -p.gain),
        (1, "the rules cost progress", _slower, lambda p: -p.loss_of_progress),
        (1, "it fails", lambda p: p.collides("ours"), lambda p: p.ours["score"]),
        (count, "as usual", lambda p: True, lambda p: abs(p.ours["score"] - median)),
    ]
    chosen: list[Choice] = []
    for most, why, fits, order in groups:
        ranked = sorted((pair for pair in pairs if fits(pair)), key=lambda p: (order(p), p.token))
        for pair in _without_repeats(ranked, chosen, min(most, count - len(chosen))):
            chosen.append(Choice(pair.token, pair.kind, why))
    return chosen


def _slower(pair: _Pair) -> bool:
    return not (pair.collides("ours") or pair.collides("base")) and pair.loss_of_progress > LEAST_LOSS


def _without_repeats(ranked: Sequence[_Pair], chosen: Sequence[Choice], most: int) -> Iterator[_Pair]:
    """The first `most` whose scenario is not shown yet; kinds that are shown already come last."""
    tokens, kinds = {one.token for one in chosen}, {one.kind for one in chosen}
    left = [pair for pair in ranked if pair.token not in tokens]
    for _ in range(min(most, len(left))):
        pair = next((one for one in left if one.kind not in kinds), left[0])
        left.remove(pair)
        kinds.add(pair.kind)
        yield pair
