"""What the plans of a drive trade, for machines and in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from radp.attribution.afterwards import Judged
from radp.attribution.trade import Trade, trades_of
from radp.incidents.course import BEFORE
from radp.incidents.find import Event
from radp.incidents.words import thing_words, trade_sentence
from radp.rules import Rule
from radp.scenario import ObjectType, Tracks
from radp.sim.rollout import Rollout

APART = 10  # samples between the plans before an incident that are looked at


def trades_at(judged: Judged, samples: Sequence[int]) -> list[Trade | None]:
    """What the plans of these samples trade."""
    rows = torch.tensor(list(samples), dtype=torch.long)
    return trades_of(judged.plans[rows], judged.context.rows(rows), judged.rules)


def trades_before(rollout: Rollout, judged: Judged | None, event: Event) -> tuple[dict[str, Any], ...]:
    """Of the plans 3, 2, 1 and 0 s before an incident: those that gave up its rule for a higher one, and for which."""
    if judged is None:
        return ()
    samples = [s for s in range(event.frame - BEFORE, event.frame + 1, APART) if 0 <= s < len(judged.plans)]
    seconds = (rollout.time_us - rollout.time_us[0]) * 1e-6
    return tuple(
        {"time": round(float(seconds[s]), 3), **trade_data(trade, judged.rules, rollout.agents)}
        for s, trade in zip(samples, trades_at(judged, samples))
        if trade is not None and trade.gives_up == event.rule
    )


def trade_data(trade: Trade, rules: Sequence[Rule], tracks: Tracks) -> dict[str, Any]:
    """A trade for machines, and the sentence for people."""
    named = trade.track >= 0
    kind = ObjectType(int(tracks.type[trade.track])).name if named else None
    track = tracks.ids[trade.track] if named else None
    data = {**trade.to_json(), "track": track, "object": kind}
    return {**data, "sentence": trade_sentence(data, trade.words(rules, thing_words(kind, track) if named else ""))}


def with_trade(moment: dict[str, Any], trade: Trade | None, rules: Sequence[Rule], tracks: Tracks) -> dict[str, Any]:
    """The moment with what its plan trades, if it trades anything."""
    if trade is None:
        return {**moment, "trade": None}
    data = trade_data(trade, rules, tracks)
    return {**moment, "trade": data, "sentence": f"{moment['sentence']} {data['sentence']}"}
