"""One drive as page data: what was driven, planned, pressed and risked, in small arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radp.attribution.afterwards import Judged, tracks_of_drive
from radp.evaluation.endpoints import PAPER
from radp.evaluation.risk import all_severities
from radp.incidents.explain import incidents_of
from radp.incidents.incident import Incident
from radp.incidents.trades import trade_data, trades_at
from radp.metrics.card import score_card
from radp.metrics.drive import box_centers
from radp.metrics.score import ScenarioScore, evaluate
from radp.report.viewer.explain import Explanation
from radp.report.viewer.frames import to_world
from radp.report.viewer.overlay import overlay_data
from radp.report.viewer.pack import MISSING, Grid, angles, pack, whole_numbers
from radp.report.viewer.words import card_rows, harmless_rows
from radp.scenario import Box, Ego
from radp.sim.rollout import Rollout

SPEED_STEP = 0.01  # m/s
TRADE_EVERY = 10  # samples between plans that are asked what they trade
PLAN_POINTS = 40  # of each plan, at most


@dataclass(frozen=True)
class DriveReport:
    """A drive with everything that a page says about it."""

    rollout: Rollout
    score: ScenarioScore
    card: dict[str, Any]
    explanation: Explanation | None
    events: np.ndarray  # (S,) uint8: bit i = the severity of endpoint i is above its threshold
    incidents: tuple[Incident, ...] = ()
    judged: Judged | None = None  # what the rules saw, for the overlays

    @classmethod
    def of(
        cls,
        rollout: Rollout,
        explanation: Explanation | None,
        judged: Judged | None = None,
        verify: float | None = None,
    ) -> DriveReport:
        """`verify`: incidents of at least this cost are also asked what would have avoided them; None: none is."""
        score = evaluate(rollout)
        incidents = tuple(incidents_of(rollout, score, judged, verify))
        return cls(rollout, score, score_card(score), explanation, risk_events(rollout, score), incidents, judged)


def risk_events(rollout: Rollout, score: ScenarioScore) -> np.ndarray:
    """(S,) uint8, bit i = endpoint i happens in this sample, from executed states alone."""
    severity, out = all_severities(rollout, score), np.zeros(len(rollout.time_us), dtype=np.uint8)
    for bit, endpoint in enumerate(PAPER):
        out |= (np.nan_to_num(severity[endpoint.series], nan=-np.inf) > endpoint.threshold).astype(np.uint8) << bit
    return out


def drive_data(
    report: DriveReport, grid: Grid, reach: float, rules: Sequence[str], overlays: bool = True
) -> dict[str, Any]:
    """JSON-ready: what is drawn of a drive, what it is worth, what its plans trade, and what went wrong."""
    card, tracks = report.card, near_tracks(report.rollout, reach)
    data = drawn_data(report.rollout, report.explanation, report.events, grid, reach, rules)
    data |= {
        "score": card["score"],
        "card": card_rows(card),
        "harmless": harmless_rows(card),
        "over": pack(_overspeed(report)),
        "incidents": [_incident(report, incident, tracks, grid) for incident in report.incidents],
    }
    if report.judged is not None:
        data["trades"] = _trades(report.rollout, report.judged)
    if report.judged is not None and report.explanation is not None and overlays:
        data["overlay"] = overlay_data(report.rollout, report.judged, report.explanation, rules, grid)
    return data


def _trades(rollout: Rollout, judged: Judged) -> list[dict[str, Any]]:
    """What the plan of each second trades, where it trades anything: its sample, and the sentence."""
    samples = range(0, len(judged.plans), TRADE_EVERY)
    return [
        {"frame": sample, "text": trade_data(trade, judged.rules, rollout.agents)["sentence"]}
        for sample, trade in zip(samples, trades_at(judged, samples))
        if trade is not None
    ]


def drawn_data(
    rollout: Rollout,
    why: Explanation | None,
    events: np.ndarray,
    grid: Grid,
    reach: float,
    rules: Sequence[str],
) -> dict[str, Any]:
    """JSON-ready, with every field that the scripts need; not scored, and without incidents. S samples, risk events
    (S,), pressures in the order of `rules`.

    Tracks that never come within `reach` metres of the ego are left out.
    """
    ego = rollout.ego
    tracks = near_tracks(rollout, reach)
    seconds = (rollout.time_us - rollout.time_us[0]) * 1e-6
    motion = np.stack((ego[:, Ego.VX], ego[:, Ego.AX]), -1)
    data: dict[str, Any] = {
        "planner": rollout.planner,
        "agents": rollout.agent_mode,
        "failure": rollout.failure,
        "samples": len(ego),
        "time": pack(seconds.astype(np.float32)),
        "ego": {
            "xy": pack(grid.positions(box_centers(ego))),
            "axle": pack(grid.positions(ego[:, : Ego.HEADING])),
            "heading": pack(angles(ego[:, Ego.HEADING])),
            "motion": pack(whole_numbers(motion, SPEED_STEP)),
        },
        "tracks": _tracks(rollout, tracks, grid),
        "events": pack(events),
        "score": None,
        "card": [],
        "harmless": [],
        "over": pack(np.zeros(len(ego), np.uint8)),
        "incidents": [],
    }
    if rollout.plans is not None:
        data["plans"] = _plans(rollout, rollout.plans, grid)
    if rollout.predictions is not None:
        data["forecasts"] = _forecasts(rollout, rollout.predictions, tracks, grid)
    if why is not None:
        shares = np.round(255 * why.share[:, tracks]).clip(0, 255).astype(np.uint8)
        data["why"] = {"pressure": pack(why.columns(rules)), "share": pack(shares)}
        if (jumps := why.jumps(rules)) is not None:
            data["why"]["jump"] = pack(jumps)
    return data


def _overspeed(report: DriveReport) -> np.ndarray:
    """(S,) uint8, tenths of m/s above the limit."""
    details = report.score.details
    over = np.zeros(len(report.rollout.ego)) if details is None else details.speed_limit.over
    return np.clip(np.round(over / 0.1), 0, 255).astype(np.uint8)


def _incident(report: DriveReport, incident: Incident, tracks: np.ndarray, grid: Grid) -> dict[str, Any]:
    """What the page says and marks; track: place among the page's tracks, None: nobody, or too far to be shown."""
    ids = [report.rollout.agents.ids[i] for i in tracks]
    place = ids.index(incident.track) if incident.track in ids else None
    lost = incident.no_return
    seconds = (report.rollout.time_us - report.rollout.time_us[0]) * 1e-6
    return {
        "metric": incident.metric,
        "rule": incident.rule,
        "title": incident.title,
        "cost": incident.cost,
        "frame": incident.frame,
        "end": incident.end,
        "time": incident.time,
        "name": incident.track,
        "track": place,
        "impact": None if incident.impact is None else grid.positions(np.array(incident.impact)).tolist(),
        "lost": None if lost is None else int(np.searchsorted(seconds, lost - 1e-6)),
        "sentences": list(incident.sentences),
    }


def near_tracks(rollout: Rollout, reach: float) -> np.ndarray:
    """(A',) tracks that come within `reach` metres of the ego at some time."""
    gap = np.linalg.norm(rollout.agents.state[..., :2] - box_centers(rollout.ego)[None], axis=-1)
    return np.flatnonzero((rollout.agents.valid & (gap <= reach)).any(1))


def _tracks(rollout: Rollout, chosen: np.ndarray, grid: Grid) -> dict[str, Any]:
    """Each track from its first to its last known sample; gaps between are MISSING."""
    agents, spans, poses, headings, speeds = rollout.agents, [], [], [], []
    for i in chosen:
        known = np.flatnonzero(agents.valid[i])
        span = slice(int(known[0]), int(known[-1]) + 1)
        valid, state = agents.valid[i, span, None], agents.state[i, span]
        seen = np.where(valid, state, np.nan)
        spans.append((span.start, span.stop - span.start))
        poses.append(grid.positions(seen[:, : Box.HEADING]))
        headings.append(angles(seen[:, Box.HEADING]))
        speeds.append(whole_numbers(np.hypot(seen[:, Box.VX], seen[:, Box.VY]), SPEED_STEP))
    empty = np.zeros(0, dtype=np.int16)
    return {
        "id": [agents.ids[i] for i in chosen],
        "type": [int(agents.type[i]) for i in chosen],
        "size": [[round(float(side), 2) for side in agents.size[i, :2]] for i in chosen],
        "span": spans,
        "xy": pack(np.concatenate(poses) if poses else empty),
        "heading": pack(np.concatenate(headings) if headings else empty),
        "speed": pack(np.concatenate(speeds) if speeds else empty),
    }


def _plans(rollout: Rollout, plans: np.ndarray, grid: Grid) -> dict[str, Any]:
    """Plans (K, H, 4), thinned; every = steps of 0.1 s between the points that are kept, the last of them included."""
    every = -(-plans.shape[1] // PLAN_POINTS)
    thin = plans[:, every - 1 :: every, :2]
    return {"points": thin.shape[1], "every": every, "xy": pack(grid.positions(to_world(rollout.ego, thin)))}


def _forecasts(rollout: Rollout, predictions: np.ndarray, chosen: np.ndarray, grid: Grid) -> dict[str, Any]:
    """Forecasts (K, N, P, 2) with the position in `chosen` of the track that each is about (MISSING: nobody)."""
    tracks = rollout.predicted_tracks
    if tracks is None:  # then they are about the nearest
        tracks = tracks_of_drive(rollout, len(predictions))[:, : predictions.shape[1]]
    places = np.full(len(rollout.agents) + 1, MISSING, dtype=np.int16)
    places[chosen] = np.arange(len(chosen))
    about = np.full(predictions.shape[:2], MISSING, dtype=np.int16)
    about[:, : tracks.shape[1]] = np.where(tracks >= 0, places[tracks], MISSING)
    return {
        "rows": predictions.shape[1],
        "points": predictions.shape[2],
        "track": pack(about),
        "xy": pack(grid.positions(to_world(rollout.ego, predictions))),
    }
