"""Copies of a plan on the same path in another time: braked, delayed and hastened, or as a better drive went."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from radp.model.seam import read_off
from radp.rules import RuleContext
from radp.rules.contact import MARGIN, WITHIN, first_contact, first_near_miss, time_to_stop
from radp.rules.motion import with_origin
from radp.scenario import DT
from radp.scene.scene import XY

CLEAR = 0.6  # m that a copy should keep: a learner that is a little off must not touch
BRAKING = (1.0, 2.0, 3.5)  # m/s2
KEPT = (0.0, 0.25, 0.5, 0.75)  # share of the plan's own speed at which braking ends
RELEASED = (1.5, 3.0, torch.inf)  # s, after which the copy drives on
DRIVING_ON = 1.5  # m/s2
HASTE = (0.5, 1.0, 1.5, 2.0)  # m/s2
FASTER = 4.0  # m/s beyond the plan's own speed, at most
RAMP = 0.8  # s in which an acceleration builds up
BACK = 2.0  # s in which a copy that goes as a drive did comes back to the plan's own speed where the drive ends


def copies_of(plan: Tensor) -> Tensor:
    """Plans (B, H, 4) in the ego frame -> (B, K, H, 4). A path that is too short goes on straight."""
    poses = with_origin(plan)
    lengths = torch.diff(poses[..., XY], dim=1).norm(dim=-1)
    own = lengths / DT
    made = [*_braked(own), *(_faster(own, haste, FASTER) for haste in HASTE)]
    return torch.stack([read_off(poses, lengths, (speed * DT).cumsum(1)) for speed in made], 1)


def hastened(plan: Tensor, haste: float, faster: float, share: float) -> Tensor:
    """Plans (B, H, 4) -> the same paths with `haste` m/s2 more, until `faster` m/s or a `share` of their own speed."""
    poses = with_origin(plan)
    lengths = torch.diff(poses[..., XY], dim=1).norm(dim=-1)
    own = lengths / DT
    speed = torch.minimum(_faster(own, haste, faster), (1 + share) * own)
    return read_off(poses, lengths, (speed * DT).cumsum(1))


def as_driven(plan: Tensor, driven: Tensor, known: Tensor) -> Tensor:
    """Plans (B, H, 4), drives from the same places (B, H, 3) and the steps that they have (B, H) bool -> (B, H, 4).

    The path stays the plan's, the speed is that of the drive, and fades to the plan's own where the drive ends.
    """
    poses = with_origin(plan)
    lengths = torch.diff(poses[..., XY], dim=1).norm(dim=-1)
    own = lengths / DT
    went = torch.diff(driven[..., XY], dim=1, prepend=torch.zeros_like(driven[:, :1, XY])).norm(dim=-1) / DT
    last = (known.sum(1) - 1).clamp(min=0).unsqueeze(1)
    beyond = DT * (torch.arange(own.shape[1], device=own.device) - last)
    back = own + (went - own).gather(1, last) * torch.exp(-beyond.clamp(min=0.0) / BACK)
    speed = torch.where(known, went, back.clamp(min=0.0))
    return read_off(poses, lengths, (speed * DT).cumsum(1))


def least_change(own: Tensor, copies: Tensor, contexts: Sequence[RuleContext], urgent: bool = False) -> Tensor:
    """Plans (B, H, 4) and copies (B, K, H, 4) of them -> (B,) the copy that mends with the least change, -1: none does.

    Best is who keeps 0.6 m to everybody and nuPlan's bound of the time to collision, for 4 s; then who comes within
    0.3 m of nobody. The road is not asked: all are on one path. Contexts are those of the plans. If only what is urgent
    is mended, a plan is looked at no longer than it takes to stop; its copy is looked at for 4 s nevertheless.
    """
    count, steps = copies.shape[1], round(WITHIN / DT)
    own, copies = own[:, :steps], copies[:, :, :steps]
    before = _grade(own, contexts, urgent)
    choice = torch.full((len(own),), -1)
    bad = before.nonzero().squeeze(1)
    if len(bad):
        own, copies, before = own[bad], copies[bad], before[bad]
        each = [context.rows(bad).repeat_interleave(count) for context in contexts]
        after = _grade(copies.flatten(0, 1), each).view(-1, count)
        change = (copies - own.unsqueeze(1))[..., XY].norm(dim=-1).mean(-1)
        best = (change / (1 + change) + after).argmin(1)  # grades are whole numbers
        better = after.gather(1, best.unsqueeze(1)).squeeze(1) < before
        choice[bad] = torch.where(better, best, -1)
    return choice


def _grade(plan: Tensor, contexts: Sequence[RuleContext], urgent: bool = False) -> Tensor:
    """(C, H, 4) -> (C,): 0 clear of everybody, 1 meets nobody, 2 meets somebody; that of the worst context."""
    grade = torch.zeros(len(plan), dtype=torch.long)
    for context in contexts:
        within = time_to_stop(context) if urgent else WITHIN
        tight = (first_contact(plan, context, CLEAR) <= within) | (first_near_miss(plan, context) <= within)
        meets = first_contact(plan, context, MARGIN) <= within
        grade = torch.maximum(grade, torch.where(meets, 2, tight.long()))
    return grade


def _braked(own: Tensor) -> list[Tensor]:
    """Speeds (B, H) -> speeds that fall to a share of them, and rise again after a while or stay."""
    time, made = _seconds(own), []
    for braking in BRAKING:
        lowest = own[:, :1] - braking * _ramped(time)
        for share in KEPT:
            slow = torch.minimum(own, torch.maximum(share * own, lowest)).clamp(min=0.0)
            for release in RELEASED:
                last = slow[:, min(own.shape[1], round(min(release, 1e3) / DT)) - 1].unsqueeze(1)
                again = torch.minimum(own, last + DRIVING_ON * (time - release).clamp(min=0.0))
                made.append(torch.where(time > release, again, slow))
    return made


def _faster(own: Tensor, haste: float, faster: float) -> Tensor:
    return own + (haste * _ramped(_seconds(own))).clamp(max=faster)


def _seconds(own: Tensor) -> Tensor:
    return DT * torch.arange(1, own.shape[1] + 1, dtype=own.dtype, device=own.device)


def _ramped(time: Tensor) -> Tensor:
    """Change of speed after `time` (H,) of an acceleration of 1 that builds up within 0.8 s."""
    return torch.where(time < RAMP, time.square() / (2 * RAMP), time - RAMP / 2)
