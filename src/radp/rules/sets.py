"""Named sets of rules: the same channels, judged by rule instances with constants of their own.

`paper` is what the planner is trained with; the `v2` sets are for attribution; `avoid` is for alignment on own states:
collisions that begin within 4 s, the sooner the more, the four corners of the body, and nothing about the seam; `road`
has eight more rules than `paper`, and `road-v2`, for attribution, as many more than `v2`. Channels keep their names in
every set; levels and heads belong to one set.
"""

from __future__ import annotations

from collections.abc import Sequence

from radp.rules.collision import Collision
from radp.rules.comfort import Comfort
from radp.rules.drivable import Drivable
from radp.rules.flow import Flow
from radp.rules.headway import Headway
from radp.rules.kinematics import Kinematics
from radp.rules.lane import BodyLane
from radp.rules.oncoming import Oncoming
from radp.rules.red_light import RedLight
from radp.rules.right_of_way import RightOfWay
from radp.rules.rss import Rss
from radp.rules.rule import Rule, registered_rules
from radp.rules.vulnerable import Vulnerable
from radp.runs.errors import BadInput, did_you_mean

PAPER, V2, AVOID, ROAD, ROAD_V2 = "paper", "v2", "avoid", "road", "road-v2"
_OF_THE_ROAD = (RedLight(), Rss(), Headway(), Vulnerable(), Drivable(), Oncoming(), RightOfWay(), Flow())

# name -> the rules that stand in for the registered ones of the same name
_SETS: dict[str, tuple[Rule, ...]] = {
    PAPER: (),
    V2: (Collision(from_now=4.0), BodyLane()),
    "v2-2s": (Collision(from_now=2.0), BodyLane()),
    "v2-discount": (Collision(discount=1.0), BodyLane()),
    AVOID: (Collision(from_now=4.0, discount=4.0), BodyLane(), Kinematics(skipped=3), Comfort(skipped=3)),
    ROAD: _OF_THE_ROAD,
    ROAD_V2: (Collision(from_now=4.0), BodyLane(), *_OF_THE_ROAD),
}


def register_rule_set(name: str, rules: Sequence[Rule]) -> None:
    """A set of your own: these rules stand in for registered ones of the same name, or come after them."""
    if name in _SETS:
        raise ValueError(f"a rule set named {name!r} is registered already")
    _SETS[name] = tuple(rules)


def rule_sets() -> tuple[str, ...]:
    """Names of all sets."""
    return tuple(_SETS)


def rule_set(name: str = PAPER) -> tuple[Rule, ...]:
    """The rules of a set, in the order of registration, the paper's six channels first; BadInput if there is none."""
    if name not in _SETS:
        raise BadInput(f"no rule set {name!r}; expected one of {', '.join(_SETS)}{did_you_mean(name, _SETS)}")
    chosen = {rule.name: rule for rule in registered_rules()}
    chosen |= {rule.name: rule for rule in _SETS[name]}
    return tuple(chosen.values())


def needs_road(rules: Sequence[Rule]) -> bool:
    """Whether scenes for these rules must be built with `SceneConfig.road`."""
    return any(rule.asks_road for rule in rules)


def rules_named(names: Sequence[str], of: str = PAPER) -> tuple[Rule, ...]:
    """Rules of the set `of` by name, in the order of the names; KeyError names the one that is missing."""
    known = {rule.name: rule for rule in rule_set(of)}
    for name in names:
        if name not in known:
            raise KeyError(f"no rule named {name!r} in the set {of!r}: {', '.join(known)}")
    return tuple(known[name] for name in names)
