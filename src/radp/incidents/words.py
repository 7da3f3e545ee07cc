"""Explanations in plain sentences. One scale for every pressure: times the usual level of its rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from radp.attribution.teacher import SEAM
from radp.incidents.incident import OF_MOTION, Explained, Incident, Press, Remedy
from radp.rules import registered_rules, rule_set
from radp.rules.sets import ROAD
from radp.sim.plan import STEP_SECONDS

MOST_LEVEL = 20.0  # larger ratios are said as "more than"
STANDS = 0.05  # m/s; what rounds to 0.0 stands
UNCALIBRATED = "not calibrated: the pressures of different rules cannot be compared"
SCALE = (
    "Pressures are given as multiples of what is usual: 1 is the level that a rule reaches or exceeds in a quarter of "
    "the moments in which it is felt."
)

TITLES = {
    "no_ego_at_fault_collisions": "Collision at fault",
    "drivable_area_compliance": "Off the road",
    "ego_is_making_progress": "No progress",
    "driving_direction_compliance": "Against the direction",
    "ego_progress_along_expert_route": "Progress lost",
    "time_to_collision_within_bound": "Short time to collision",
    "speed_limit_compliance": "Above the speed limit",
    "ego_is_comfortable": "Uncomfortable",
}


def kind_words(kind: str) -> str:
    """starting_left_turn -> Starting left turn."""
    words = kind.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def thing_words(kind: str | None, track: str | None) -> str:
    """VEHICLE, 12 -> vehicle 12."""
    return f"{str(kind).lower().replace('_', ' ')} {track}"


def object_words(moment: dict[str, Any]) -> str:
    """' (vehicle 12)', or nothing."""
    return "" if moment["track"] is None else f" ({thing_words(moment['object'], moment['track'])})"


def margin_words(moment: dict[str, Any]) -> str:
    """How far from the bound, or how far beyond it."""
    margin, unit = moment["margin"], moment["unit"]
    if margin is None or unit == "m/s delta v":
        return ""
    share = unit == "ratio"
    amount = f"{abs(100 * margin):.0f} %" if share else f"{abs(margin):.2f} {unit}"
    return f", {amount} to spare" if margin >= 0 else f", {amount} beyond the bound"


def level_words(level: float | None, pressure: float = 0.0) -> str:
    """How strongly a rule presses, for people."""
    if level is None:
        return f"pressure {pressure:.2f} (not calibrated)"
    if level > MOST_LEVEL:
        return f"more than {MOST_LEVEL:.0f} times its usual level"
    return f"{level:.1f} times its usual level"


def jump_words(jump: float | None) -> str:
    """That a pressure is about how a plan begins."""
    if jump is None:
        return ""
    way = "faster" if jump > 0 else "slower"
    return f" (a jump: the plan's first step is {abs(jump):.1f} m/s {way} than the car)"


def sentence(moment: dict[str, Any]) -> str:
    """One sentence about a moment."""
    ordered = sorted(moment["rules"], key=lambda rule: -rule["pressure"])
    top, at = ordered[0], f"At {moment['time']:.1f} s "
    if top["begins"] is None:
        return f"{at}no rule presses on the plan."
    calm = top["level"] is not None and top["level"] < 1
    opening = f"nothing presses more than usual; most of all {top['rule']}" if calm else f"{top['rule']} presses most"
    words = f"{at}{opening}, {level_words(top['level'], top['pressure'])}"
    if top.get("jump") is not None:
        return words + jump_words(top["jump"]) + _others(ordered)
    words += f", from {top['begins']:.1f} s of the plan on (most at {top['peak']:.1f} s)"
    if top["rule"] == "collision" and moment["object"] is not None:
        named = thing_words(moment["object"]["object"], moment["object"]["track"])
        words += f", because of {named} ({100 * moment['object']['share']:.0f} % of it)"
    known = {rule.name: rule.describes for rule in (*rule_set(ROAD), *registered_rules())}
    describes = known.get(top["rule"], top["rule"])
    words += f": {describes}{margin_words(top)}{_at_the_seam(top)}" if top["margin"] is not None else ""
    return words + _others(ordered)


def _at_the_seam(rule: dict[str, Any]) -> str:
    """That an amount is not one of driving: it is reached where the plan takes over from the car."""
    worst = rule.get("worst")
    if rule["rule"] not in OF_MOTION or rule["margin"] >= 0 or worst is None or worst > SEAM * STEP_SECONDS + 1e-9:
        return ""
    return " in the first step, where the plan does not begin as the car moves"


def _others(ordered: Sequence[dict[str, Any]]) -> str:
    loud = [rule for rule in ordered[1:] if (rule["level"] or 0) >= 1]
    jumps = [", a jump" if rule.get("jump") is not None else "" for rule in loud]
    others = [f"{rule['rule']} ({level_words(rule['level'])}{jump})" for rule, jump in zip(loud, jumps)]
    return f". Also above usual: {', '.join(others)}." if others else "."


def incident_sentences(incident: Incident) -> tuple[str, ...]:
    """What happened; the seconds before; what pressed; from when on it was lost; what would have avoided it."""
    cost = f"costs {100 * incident.cost:.1f} points" if incident.cost > 0 else "costs nothing more, gates took all"
    whom = f" with {thing_words(incident.object, incident.track)}" if incident.track is not None else ""
    head = f"{incident.title} at {incident.time:.1f} s{whom}: {incident.what}; {cost}."
    return tuple(
        text
        for text in (
            head,
            _course(incident),
            _pressed(incident),
            _traded(incident),
            _no_return(incident),
            *_remedies(incident),
        )
        if text
    )


def _course(incident: Incident) -> str:
    """Three of the beats: 3, 2 and 1 s before."""
    parts, moves = [], "walks" if incident.object == "PEDESTRIAN" else "drives"
    for beat in incident.course[:-1][::2]:
        gap = "" if beat.gap is None else f", {max(beat.gap, 0.0):.1f} m from it"
        theirs = beat.other_speed
        speed = "" if theirs is None else " (it stands)" if theirs < STANDS else f" (it {moves} {theirs:.1f} m/s)"
        parts.append(f"at {beat.time:.1f} s {beat.speed:.1f} m/s{gap}{speed}")
    return f"Before: {'; '.join(parts)}." if parts else ""


def _pressed(incident: Incident) -> str:
    if not incident.presses:
        return "No rule pressed more than usual in the 3 s before." if incident.course else ""
    own = [press for press in incident.presses if press.rule == incident.rule]
    missing = "" if own else f"{kind_words(incident.rule)} did not press more than usual in the 3 s before. "
    if own and incident.track is not None and own[0].track != incident.track:
        missing = f"Because of {incident.track} collision did not press more than usual in the 3 s before. "
    return f"{missing}Pressing: {'; '.join(_press(press) for press in incident.presses[:4])}."


def _press(press: Press) -> str:
    span = f"from {press.begins:.1f} to {press.ends:.1f} s" if press.ends > press.begins else f"at {press.begins:.1f} s"
    whom = "" if press.track is None else f" because of {press.track}"
    return f"{press.rule} {span}{whom}, most at {press.peak:.1f} s: {level_words(press.level, press.pressure)}" + (
        jump_words(press.jump)
    )


def trade_sentence(trade: Mapping[str, Any], words: str) -> str:
    """Safety before progress: the plan gives up ..."""
    return f"{kind_words(trade['keeps_tier'])} before {trade['gives_up_tier']}: {words}."


def _traded(incident: Incident) -> str:
    """The first of the plans that gave up the incident's rule for a higher one."""
    return "".join(f"At {one['time']:.1f} s, {_lower(one['sentence'])}" for one in incident.trades[:1])


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _no_return(incident: Incident) -> str:
    if incident.note is not None:
        return f"Not tried: {incident.note}."
    if incident.no_return is not None:
        before = incident.time - incident.no_return
        return f"From {incident.no_return:.1f} s on ({max(before, 0):.1f} s before) nothing that was tried avoids it."
    if incident.tried and not incident.remedies:
        return f"None of {incident.tried} other drives in the 5 s before avoids it."
    return ""


def _remedies(incident: Incident) -> list[str]:
    return [
        f"Would have avoided it (driven in the simulator): {remedy_words(one)}." for one in incident.remedies[:1]
    ] + [f"Or: {remedy_words(one)}." for one in incident.remedies[1:]]


def remedy_words(remedy: Remedy) -> str:
    """What to do, when, and how strongly."""
    when = f"at {remedy.at:.1f} s at the latest" if remedy.latest else f"from {remedy.at:.1f} s on"
    if remedy.kind == "brake":
        return f"braking with {remedy.amount:g} m/s2 {when}"
    if remedy.kind == "hold":
        return f"keeping to the plan of {remedy.at:.1f} s" + (", the latest that helps" if remedy.latest else "")
    if remedy.kind == "smooth":
        return f"the same way {when} with speeds smoothed over {remedy.amount:g} s"
    if remedy.kind == "push":
        return f"{remedy.amount:g} m/s2 more {when}, which wins {remedy.gained or 0:.1f} m"
    return f"shifting the plan of {remedy.at:.1f} s by {shift_words(remedy)} (up to {remedy.amount:g} m/s2)" + (
        ", the latest that helps" if remedy.latest else ""
    )


def shift_words(remedy: Remedy) -> str:
    """0.8 m back and 0.3 m to the left."""
    ahead = f"{abs(remedy.ahead):.1f} m {'forward' if remedy.ahead > 0 else 'back'}"
    aside = f"{abs(remedy.left):.1f} m to the {'left' if remedy.left > 0 else 'right'}"
    parts = [text for text, size in ((ahead, remedy.ahead), (aside, remedy.left)) if abs(size) >= 0.05]
    return " and ".join(parts) or f"{max(abs(remedy.ahead), abs(remedy.left)):.2f} m"


def explained_text(explained: Sequence[Explained]) -> str:
    """A heading, the incidents and the other moments of each drive."""
    lines = [] if all(one.levels for one in explained) else [UNCALIBRATED]
    for one in explained:
        score = "" if one.score is None else f", score {100 * one.score:.1f}"
        who = f"{one.planner}{score}" if one.planner else ""
        lines.append(f"{kind_words(one.kind)} ({', '.join(part for part in (one.token, who) if part)})")
        for incident in one.incidents:
            lines.append(f"  {incident.sentences[0]}")
            lines += [f"    {text}" for text in incident.sentences[1:]]
        if one.moments and one.planner:
            lines.append("  Highest pressures otherwise:" if one.incidents else "  No incident. Highest pressures:")
        lines += [f"  {moment['sentence']}" for moment in one.moments]
        lines += [f"  The planner failed: {one.failure}"] if one.failure else []
    known = sorted({one.levels for one in explained if one.levels})
    return "\n".join([*lines, f"{SCALE} Usual levels: {', '.join(known)}."] if known else lines)
