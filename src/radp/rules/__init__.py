"""Driving rules as differentiable costs: one file and one class each, served by one registry."""

from radp.rules.context import RuleContext
from radp.rules.costs import rule_costs, rule_gradients
from radp.rules.rule import Rule, default_rules, register_rule, registered_rules, rules_named

__all__ = [
    "Rule",
    "RuleContext",
    "default_rules",
    "register_rule",
    "registered_rules",
    "rule_costs",
    "rule_gradients",
    "rules_named",
]
