"""The examples on weights, on the rulebook and on the choice among plans; `own_rule.py` has tests of its own."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import torch

from radp.rules import RuleContext
from radp.rules.contact import first_contact
from tests.rules.hand_made import scene, straight_plan, straight_route

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str, folder: Path = EXAMPLES) -> ModuleType:
    spec = spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_packaged_planner_listens_to_weights(capsys: pytest.CaptureFixture[str]) -> None:
    plans = example("weights").main()
    said = capsys.readouterr().out.splitlines()
    assert len(plans) == len(said) == 4 and said[0].startswith("default: collision ")
    assert len({line.partition("collision ")[2] for line in said}) == 4
    moved = [float((plan.trajectory - plans[0].trajectory)[..., :2].norm(dim=-1).mean()) for plan in plans[1:]]
    assert all(0.01 < metres < 10.0 for metres in moved)


def test_of_eight_plans_the_clear_one_is_driven() -> None:
    chooser = example("best_of_eight", EXAMPLES.parent / "scripts").BestOfEight(plans=3)
    now = scene(straight_route(), agents=[(30.0, 0.0, 0.0, 0.0, 4.5)])  # a standing car, 30 m ahead
    plans = torch.stack([straight_plan(speed)[0] for speed in (10.0, 5.0, 0.1)])[None]
    context = RuleContext.from_scene(now, logged=False)
    assert chooser.best(plans, context).tolist() == [1]  # the first hits it, the last does not move
    assert chooser.best(plans[:, [0, 0, 2]], context).tolist() == [2]
    assert chooser.name == "diffusion-planner-mini-best-of-3"


def test_a_plan_that_meets_somebody_soon_is_driven_braked() -> None:
    mender = example("best_copy", EXAMPLES.parent / "scripts").BestCopy()
    own = straight_plan(10.0).expand(2, -1, -1)
    ahead, free = scene(straight_route(), agents=[(30.0, 0.0, 0.0, 0.0, 4.5)]), scene(straight_route())
    driven = [mender.mended(own[:1], RuleContext.from_scene(now)) for now in (ahead, free)]
    assert float(first_contact(driven[0], RuleContext.from_scene(ahead), 0.3)) > 4.0
    assert torch.equal(driven[1], own[:1])
    assert mender.name == "diffusion-planner-mini-best-copy" and mender.scenes.rules


@pytest.mark.slow
def test_two_planners_by_the_rulebook(capsys: pytest.CaptureFixture[str]) -> None:
    example("compare_by_rulebook").main(scenarios=1)
    said = capsys.readouterr().out.splitlines()
    assert ": idm is " in said[0] and said[0].split(" is ")[1].split()[0] in (
        "better",
        "worse",
        "incomparable",
        "equal",
    )
    assert all(line.startswith("    ") for line in said[1:])
