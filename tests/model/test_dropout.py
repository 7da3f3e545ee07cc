import pytest
import torch

from radp.model.dropout import Dropout, DropPath, dropout, masked_by_seed, torchs_own


def test_rate_scale_and_seed():
    torch.manual_seed(0)
    ones = torch.ones(1_000_001)  # odd on purpose
    out = dropout(ones, 0.1, training=True)
    dropped = out == 0
    assert float(dropped.float().mean()) == pytest.approx(6554 / 65536, abs=5 * (0.09 / 1e6) ** 0.5)
    assert torch.equal(out[~dropped], torch.full_like(out[~dropped], 65536 / (65536 - 6554)))
    assert float(out.mean()) == pytest.approx(1.0, abs=2e-3)
    torch.manual_seed(0)
    assert torch.equal(dropout(ones, 0.1, training=True), out)
    assert not torch.equal(dropout(ones, 0.1, training=True), out)


def test_neighbouring_elements_and_calls_are_independent():
    torch.manual_seed(1)
    ones = torch.ones(1 << 20)
    first, second = (dropout(ones, 0.5, training=True) == 0 for _ in range(2))
    limit = 5 * (0.25 * 0.75 / ones.numel()) ** 0.5
    for lag in (1, 2, 64, 128, 8192, 1 << 19):
        assert float((first[lag:] & first[:-lag]).float().mean()) == pytest.approx(0.25, abs=2 * limit)
    assert float((first & second).float().mean()) == pytest.approx(0.25, abs=limit)


def test_backward_uses_the_same_mask():
    torch.manual_seed(2)
    values = torch.randn(64, 33, requires_grad=True)
    out = dropout(values, 0.3, training=True)
    out.backward(torch.ones_like(out))
    torch.testing.assert_close(values.grad * values.detach(), out.detach())


def test_the_number_of_threads_changes_nothing():
    values = torch.ones(3_000_001)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = masked_by_seed(values, -(2**40) - 5, 6554)
        torch.set_num_threads(2)
        assert torch.equal(masked_by_seed(values, -(2**40) - 5, 6554), one)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_tiny_tensors(size):
    assert masked_by_seed(torch.ones(size), 1, 0).tolist() == [1.0] * size


def test_off_in_eval_and_elsewhere_torchs_own():
    values = torch.ones(1000, dtype=torch.float64)
    assert dropout(values, 0.5, training=False) is values and Dropout(0.0).train()(values) is values
    assert 300 < int((dropout(values, 0.5, training=True) == 0).sum()) < 700


def test_drop_path_takes_whole_samples():
    torch.manual_seed(3)
    out = DropPath(0.25).train()(torch.ones(4000, 3, 2))
    per_sample = out.flatten(1)
    assert all(row.unique().numel() == 1 for row in per_sample[:50])
    kept = per_sample[:, 0] != 0
    assert float(kept.float().mean()) == pytest.approx(0.75, abs=0.04)
    torch.testing.assert_close(per_sample[kept][:, 0], torch.full((int(kept.sum()),), 1 / 0.75))
    assert torch.equal(DropPath(0.25).eval()(out), out)


def test_adding_to_a_residual_is_dropout_and_a_sum():
    before, values = torch.randn(2, 65, 33)
    before.requires_grad_(), values.requires_grad_()
    torch.manual_seed(3)
    summed = before + dropout(values, 0.3, training=True)
    expected = torch.autograd.grad(summed.square().sum(), (before, values))
    torch.manual_seed(3)
    at_once = dropout(values, 0.3, training=True, to=before)
    torch.testing.assert_close(at_once, summed)
    torch.testing.assert_close(torch.autograd.grad(at_once.square().sum(), (before, values)), expected)
    assert torch.equal(dropout(values, 0.3, training=False, to=before), before + values)


def test_torchs_own_masks_can_be_asked_for():
    ones = torch.ones(1000)
    with torchs_own():
        torch.manual_seed(4)
        out = dropout(ones, 0.3, training=True)
    torch.manual_seed(4)
    assert torch.equal(out, torch.nn.functional.dropout(ones, 0.3))
    torch.manual_seed(4)
    assert not torch.equal(dropout(ones, 0.3, training=True), out)
