"""PDM-Open and PDM-Offset against every number of the published networks' golden files."""

import pytest
import torch

from radp.planners.zoo.pdm_open import PDMConfig, PDMOpen, l1_loss
from tests.planners.zoo.golden import PLANNERS, Seen, check_gradients, close, read_golden
from tests.shared_data import shared_params

pytestmark = pytest.mark.golden


@pytest.fixture(params=shared_params(f"{PLANNERS}/pdm_*/golden_*.npz"), scope="module")
def case(request):
    golden = read_golden(request.param)
    return golden, golden.load(PDMOpen(PDMConfig(offset=request.param.parent.name == "pdm_hybrid")))


def test_output_and_intermediates(case):
    golden, network = case
    names = [name.removeprefix("out/inter/") for name in golden.arrays if name.startswith("out/inter/")]
    with torch.no_grad(), Seen({name: network.get_submodule(name) for name in names}) as seen:
        output = network(golden.below("in/"))
    close(output, golden["out/trajectory"])
    assert set(seen) == set(names)
    for name in names:
        close(seen[name], golden[f"out/inter/{name}"])


def test_loss_and_gradients(case):
    golden, network = case
    network.zero_grad()
    output, target = network(golden.below("in/")), golden["in/target"]
    loss = l1_loss(output, target)
    close(loss, golden["out/loss"], 1e-5)
    weight = torch.ones(len(target)).index_fill(0, torch.tensor(0), 2.0)
    close(l1_loss(output, target, weight), golden["out/loss_first_sample_weight_2"], 1e-5)
    loss.backward()
    check_gradients(network, golden.arrays["out/grad_norm_names"], golden.arrays["out/grad_norms"])
