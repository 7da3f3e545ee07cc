"""Numbers and states of CommonRoad elements."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from radp.scenario import Box


def number(element: Element, place: str) -> float:
    """A number at a place below an element: an exact value, or the middle of an interval."""
    found = element.find(place)
    if found is None:
        raise ValueError(f"<{element.tag}> has no <{place}>")
    exact = found.find("exact")
    if exact is not None:
        return float(exact.text or "nan")
    ends = [found.find("intervalStart"), found.find("intervalEnd")]
    if all(end is not None for end in ends):
        return float(np.mean([float(end.text or "nan") for end in ends if end is not None]))
    return float(found.text or "nan")


def read_state(element: Element) -> np.ndarray:
    """(5,) box: the velocity points along the heading."""
    heading = number(element, "orientation")
    speed = number(element, "velocity") if element.find("velocity") is not None else 0.0
    point = element.find("position/point")
    if point is None:
        point = element.find("position/rectangle/center")
    row = np.full(5, np.nan)
    if point is not None:
        row[Box.X], row[Box.Y], row[Box.HEADING] = number(point, "x"), number(point, "y"), heading
        row[Box.VX], row[Box.VY] = speed * np.cos(heading), speed * np.sin(heading)
    return row
