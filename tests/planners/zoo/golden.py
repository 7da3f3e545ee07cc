"""Golden files of the published planners: weights, inputs and outputs by name."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

PLANNERS = "golden/planners"


class Golden:
    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    def __getitem__(self, name: str) -> Tensor:
        return torch.from_numpy(self.arrays[name])

    def below(self, prefix: str) -> dict[str, Tensor]:
        """Tensors whose name starts with the prefix, without it."""
        return {name[len(prefix) :]: self[name] for name in self.arrays if name.startswith(prefix)}

    def names(self, prefix: str) -> list[str]:
        return sorted({name[len(prefix) :].split("/")[0] for name in self.arrays if name.startswith(prefix)})

    def weights(self) -> dict[str, Tensor]:
        return {k: v.float() if v.dtype == torch.float16 else v for k, v in self.below("w/").items()}

    def load(self, network: nn.Module, left_out: tuple[str, ...] = ()) -> nn.Module:
        """The golden weights in a network; only names that end as `left_out` says may be missing in the file."""
        result = network.load_state_dict(self.weights(), strict=False)
        assert not result.unexpected_keys
        assert all(name.endswith(left_out) for name in result.missing_keys) if left_out else not result.missing_keys
        return network.eval()


@lru_cache(maxsize=2)
def read_golden(path: Path) -> Golden:
    with np.load(path, allow_pickle=False) as arrays:
        return Golden({name: arrays[name] for name in arrays.files})


def close(actual: Tensor, expected: Tensor, atol: float = 1e-4, rtol: float = 0.0) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=rtol, check_dtype=False)


def check_gradients(network: nn.Module, names: np.ndarray, norms: np.ndarray, rel: float = 1e-4, atol: float = 1e-5):
    """Every parameter's gradient has the norm that the published program found."""
    found = {name: 0.0 if p.grad is None else float(p.grad.double().norm()) for name, p in network.named_parameters()}
    assert set(found) == set(names.tolist())
    for name, norm in zip(names.tolist(), norms.tolist()):
        assert found[name] == pytest.approx(norm, rel=rel, abs=atol), name


class Seen(dict[str, object]):
    """Outputs of modules by name, caught while a network runs."""

    def __init__(self, modules: dict[str, nn.Module]) -> None:
        super().__init__()
        self.hooks = [
            module.register_forward_hook(lambda _, __, out, name=name: self.__setitem__(name, out))
            for name, module in modules.items()
        ]

    def __enter__(self) -> Seen:
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()


def close_poses(actual: Tensor, expected: Tensor) -> None:
    """(..., >= 3) x, y, heading, ...: headings to 1e-3, as the angle of a short vector is less exact."""
    close(torch.cat((actual[..., :2], actual[..., 3:]), -1), torch.cat((expected[..., :2], expected[..., 3:]), -1))
    close(actual[..., 2], expected[..., 2], 1e-3)
