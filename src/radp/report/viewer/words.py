"""The score card in words that need no manual."""

from __future__ import annotations

from typing import Any

from radp.incidents.words import kind_words, margin_words, object_words

TITLES = {
    "no_ego_at_fault_collisions": "No collision at fault",
    "drivable_area_compliance": "Stays on the road",
    "ego_is_making_progress": "Makes progress",
    "driving_direction_compliance": "Keeps the direction",
    "ego_progress_along_expert_route": "Progress along the route",
    "time_to_collision_within_bound": "Time to collision",
    "speed_limit_compliance": "Speed limit",
    "ego_is_comfortable": "Comfort",
}
SHORT = {
    "no_ego_at_fault_collisions": "collision",
    "drivable_area_compliance": "road",
    "ego_is_making_progress": "moving",
    "driving_direction_compliance": "direction",
    "ego_progress_along_expert_route": "progress",
    "time_to_collision_within_bound": "ttc",
    "speed_limit_compliance": "speed limit",
    "ego_is_comfortable": "comfort",
}
RISKS = {
    "collision": "contact with another box",
    "ttc": "less than 0.95 s to a collision",
    "lane": "less than 0.3 m inside the route's border",
    "speed": "faster than the limit",
    "kinematics": "acceleration or curvature beyond its bound",
    "comfort": "jerk or steering beyond its bound",
    "goal": "more than 20% behind the expert",
}


def moment_words(name: str, moment: dict[str, Any]) -> str:
    """One line about a moment that decided a metric."""
    what = str(moment["what"]).replace("_", " ")
    if name == "ego_progress_along_expert_route":
        return what  # its margin is the difference of the two figures
    if name == "ego_is_making_progress":
        return what
    return what + object_words(moment) + margin_words(moment)


def card_rows(card: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each metric, in the card's order: title, value, verdict, cost, and the moments to jump to."""
    rows = []
    for name, entry in card["metrics"].items():
        gate, value = entry["role"] == "gate", entry["value"]
        rows.append(
            {
                "name": name,
                "title": TITLES.get(name, kind_words(name)),
                "gate": gate,
                "weight": entry["weight"],
                "value": value,
                "cost": entry["cost"],
                "moments": [
                    {"frame": moment["frame"], "time": moment["time"], "text": moment_words(name, moment)}
                    for moment in entry["moments"]
                ],
            }
        )
    return rows


def harmless_rows(card: dict[str, Any]) -> list[dict[str, Any]]:
    """Contacts that are not the ego's fault, which the score forgives."""
    return [
        {
            "frame": contact["frame"],
            "time": contact["time"],
            "text": f"Contact not at fault: {contact['type'].lower().replace('_', ' ')}" + object_words(contact),
        }
        for contact in card["collisions"]
        if not contact["at_fault"]
    ]
