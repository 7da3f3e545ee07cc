"""Which rules judge in the studio."""

from __future__ import annotations

from radp.rules import rule_set
from radp.studio.workshop import Workshop


def test_a_rule_set_by_name_judges_instead_of_the_planners_own() -> None:
    names = [rule["name"] for rule in Workshop(rule_set="road-v2").weights("idm")]
    assert names == [rule.name for rule in rule_set("road-v2")]
    assert [rule["name"] for rule in Workshop().weights("idm")] == names[:6]
