"""The mean of models: weight by weight, and only of models that compare."""

from dataclasses import replace

import pytest
import torch

from radp.cli.main import main
from radp.model.average import average_models
from radp.model.checkpoint import load_model, save_model
from radp.runs.errors import BadInput
from tests.made_models import SMALL, randomised


def two():
    return randomised(SMALL, 1), randomised(SMALL, 2)


def test_the_mean_is_taken_weight_by_weight_and_leaves_the_models_alone():
    a, b = two()
    before = {name: value.clone() for name, value in a.state_dict().items()}
    mean, mostly_b = average_models([a, b]), average_models([a, b], [0.25, 0.75])
    for name, value in before.items():
        other = b.state_dict()[name]
        torch.testing.assert_close(mean.state_dict()[name], (value + other) / 2)
        torch.testing.assert_close(mostly_b.state_dict()[name], 0.25 * value + 0.75 * other)
        assert torch.equal(a.state_dict()[name], value)
    assert any(not torch.equal(before[name], mean.state_dict()[name]) for name in before)


def test_a_model_with_itself_is_that_model():
    a, _ = two()
    for name, value in average_models([a, a, a]).state_dict().items():
        torch.testing.assert_close(value, a.state_dict()[name])


@pytest.mark.parametrize(
    ("shares", "words"), [((0.5, 0.6), "add up to 1"), ((1.0,), "expected 2"), ((1.5, -0.5), "add up to 1")]
)
def test_shares_that_are_none_are_refused(shares, words):
    with pytest.raises(BadInput, match=words):
        average_models(two(), shares)


def test_models_that_do_not_compare_are_refused():
    a, _ = two()
    for few in ([], [a]):
        with pytest.raises(BadInput, match="at least two"):
            average_models(few)
    with pytest.raises(BadInput, match="other settings"):
        average_models([a, randomised(replace(SMALL, sampler_steps=3), 1)])


def test_the_command_writes_a_model_that_loads(tmp_path, capsys):
    a, b = two()
    for name, model in (("a", a), ("b", b)):
        save_model(model, tmp_path / name)
    out = tmp_path / "mean"
    assert main(["train", "average", "--models", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    found, wanted = load_model(out).state_dict(), average_models([a, b]).state_dict()
    assert all(torch.equal(found[name], value) for name, value in wanted.items())
    assert load_model(out).about["training"]["models"] == ["a", "b"]
