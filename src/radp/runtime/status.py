"""What a trajectory validator would say of a plan: a level for each rule, and the object that causes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from radp.runtime.manifest import ExportManifest

WARN = float(np.log(2.0))  # the pressure of a rule at its usual level
NEAR = 0.5  # m to another box: a warning
OVER = 2.23  # m/s over the limit: an error, as in nuPlan's metric
LEVELS = ("ok", "warn", "error")


@dataclass(frozen=True)
class RuleStatus:
    """A rule, its level, and what it is about: an array of the scene and the row in it, or nothing."""

    rule: str
    level: str  # ok, warn, error
    pressure: float | None  # of the head
    value: float | None = None  # least gap [m], or speed over the limit [m/s]
    array: str = ""
    row: int = -1


def rule_statuses(
    joint: np.ndarray, scene: Mapping[str, np.ndarray], pressures: Mapping[str, float], manifest: ExportManifest
) -> tuple[RuleStatus, ...]:
    """joint (P, T, 4), a scene without batch axis -> one status for each rule; collision and speed always."""
    checks = {"collision": _collision(joint, scene, manifest), "speed": _speed(joint[0], scene)}
    found = []
    for rule in dict.fromkeys((*manifest.rules, *checks)):
        pressure = pressures.get(rule)
        pressed = int(pressure is not None and pressure >= WARN)
        level, value, array, row = checks.get(rule, (0, None, "", -1))
        found.append(RuleStatus(rule, LEVELS[max(level, pressed)], pressure, value, array, row))
    return tuple(found)


Check = tuple[int, float | None, str, int]  # level, value, array, row


def _collision(joint: np.ndarray, scene: Mapping[str, np.ndarray], manifest: ExportManifest) -> Check:
    """The box that the plan comes nearest to: neighbours where they are predicted, static objects where they are."""
    agents, still = scene["neighbor_agents_past"][: len(joint) - 1, -1], scene["static_objects"]
    vehicle, steps = manifest.values["vehicle"], joint.shape[1]
    ego = joint[0].copy()
    ego[:, :2] += float(vehicle["rear_axle_to_center"]) * ego[:, 2:]
    boxes = np.concatenate((joint[1:], np.repeat(still[:, None, :4], steps, 1)))
    sizes = np.concatenate((agents[:, [7, 6]], still[:, [5, 4]]))
    there = np.concatenate(((agents != 0).any(-1), (still != 0).any(-1)))
    if not there.any():
        return 0, None, "", -1
    gaps = box_gaps(ego, np.array([vehicle["length"], vehicle["width"]]), boxes, sizes).min(1)
    worst = int(np.where(there, gaps, np.inf).argmin())
    gap = float(gaps[worst])
    known = worst < len(agents)
    place = ("neighbor_agents_past", worst) if known else ("static_objects", worst - len(agents))
    return (2 if gap < 0.0 else int(gap < NEAR)), gap, *place


def box_gaps(ego: np.ndarray, size: np.ndarray, boxes: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Poses (T, 4) and (N, T, 4) of centres, lengths and widths (2,) and (N, 2) -> (N, T) m, negative if they overlap.

    The widest gap along the four directions of the two boxes: exact in its sign, and never more than the distance.
    """
    between = boxes[..., :2] - ego[:, :2]
    widest = np.full(boxes.shape[:2], -np.inf)
    for owner in (np.broadcast_to(ego, boxes.shape), boxes):
        for axis in (owner[..., 2:], np.stack((-owner[..., 3], owner[..., 2]), -1)):
            reach = _reach(np.broadcast_to(ego, boxes.shape), np.broadcast_to(size, (len(boxes), 2)), axis)
            reach += _reach(boxes, sizes, axis)
            widest = np.maximum(widest, np.abs((between * axis).sum(-1)) - reach)
    return widest


def _reach(poses: np.ndarray, sizes: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """(N, T) half the extent of boxes along axes (N, T, 2)."""
    along = np.abs((poses[..., 2:] * axis).sum(-1))
    across = np.abs(poses[..., 2] * axis[..., 1] - poses[..., 3] * axis[..., 0])
    return 0.5 * (along * sizes[:, None, 0] + across * sizes[:, None, 1])


def _speed(plan: np.ndarray, scene: Mapping[str, np.ndarray]) -> Check:
    """Most speed over the limit of the lane whose points are nearest; lanes without a known limit say nothing."""
    known = scene["lanes_has_speed_limit"][:, 0].astype(bool) & (scene["lanes"] != 0).any((1, 2))
    if not known.any():
        return 0, None, "", -1
    lanes = np.flatnonzero(known)
    points = scene["lanes"][lanes, :, :2]
    poses = np.concatenate((np.zeros((1, 2), plan.dtype), plan[:, :2]))
    speed = np.linalg.norm(np.diff(poses, axis=0), axis=-1) / 0.1
    away = np.linalg.norm(plan[:, None, None, :2] - points[None], axis=-1).min(-1)  # (T, L)
    nearest = lanes[away.argmin(1)]
    over = speed - scene["lanes_speed_limit"][nearest, 0]
    worst = int(over.argmax())
    return (2 if over[worst] > OVER else int(over[worst] > 0.0)), float(over[worst]), "lanes", int(nearest[worst])
