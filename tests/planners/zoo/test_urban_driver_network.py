"""UrbanDriver against every number of the published network's golden files."""

import pytest
import torch

from radp.planners.zoo.pdm_open import l1_loss
from radp.planners.zoo.urban_driver import UrbanDriver, assemble, weighted_loss
from tests.planners.zoo.golden import PLANNERS, check_gradients, close, read_golden
from tests.shared_data import shared_params

pytestmark = pytest.mark.golden


@pytest.fixture(params=shared_params(f"{PLANNERS}/urban_driver/golden_*.npz"), scope="module")
def case(request):
    golden = read_golden(request.param)
    network = golden.load(UrbanDriver(), left_out=("static_embedding",))
    samples = [assemble(golden.below(f"in/{b}/")) for b in range(len(golden["in/target"]))]
    features, avails = (torch.stack(parts) for parts in zip(*samples))
    return golden, network, {"features": features, "avails": avails}


def test_assembled_polylines_and_table_of_positions(case):
    golden, network, batch = case
    close(batch["features"], golden["out/inter/features"], 1e-6)
    assert torch.equal(batch["avails"], golden["out/inter/avails"])
    close(
        network.positional_embedding.static_embedding[:64],
        golden["w_first64/positional_embedding.static_embedding"],
        1e-5,
    )


def test_output_and_intermediates(case):
    golden, network, batch = case
    with torch.no_grad():
        polylines, seen = network.polylines(batch["features"], batch["avails"])
        mixed, attention = network.attend(polylines, seen)
        close(polylines, golden["out/inter/local_subgraph"])
        close(network.scaled(polylines), golden["out/inter/attention_input"])
        close(mixed, golden["out/inter/attention_out"])
        close(attention, golden["out/inter/attention_weights"])
        close(network(batch), golden["out/trajectory"])


@pytest.mark.parametrize("name, loss", [("weight_decay", weighted_loss), ("l1", l1_loss)])
def test_losses_and_gradients(case, name, loss):
    golden, network, batch = case
    network.zero_grad()
    value = loss(network(batch), golden["in/target"])
    close(value, golden[f"out/loss_{name}"], 1e-5, 1e-5)
    value.backward()
    norms = golden.arrays[f"out/grad_norms_{name}"]
    check_gradients(network, golden.arrays["out/grad_norm_names"], norms, 1e-3, 1e-6)
