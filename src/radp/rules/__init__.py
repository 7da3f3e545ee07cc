"""Driving rules as differentiable costs: one file and one class each, served by one registry."""

from radp.rules.collision import Collision
from radp.rules.context import RuleContext
from radp.rules.costs import rule_costs, rule_gradients
from radp.rules.lane import BodyLane
from radp.rules.rule import Rule, default_rules, register_rule, registered_rules
from radp.rules.sets import needs_road, register_rule_set, rule_set, rule_sets, rules_named

__all__ = [
    "BodyLane",
    "Collision",
    "Rule",
    "RuleContext",
    "default_rules",
    "needs_road",
    "register_rule",
    "register_rule_set",
    "registered_rules",
    "rule_costs",
    "rule_gradients",
    "rule_set",
    "rule_sets",
    "rules_named",
]
