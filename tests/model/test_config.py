"""Sizes that a model may ask for."""

import pytest

from radp.model.config import LARGEST, ModelConfig


@pytest.mark.parametrize("name", LARGEST)
def test_sizes_have_bounds(name: str) -> None:
    for value, words in ((0, f"{name} must be positive"), (LARGEST[name] + 1, f"{name} is more than {LARGEST[name]}")):
        with pytest.raises(ValueError, match=words):
            ModelConfig.from_json({name: value})
    assert getattr(ModelConfig(), name) * 2 <= LARGEST[name]
