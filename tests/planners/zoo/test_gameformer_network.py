"""GameFormer's network and loss against every number of the published ones' golden files."""

import pytest
import torch

from radp.planners.zoo.gameformer import GameFormer, drive, gameformer_loss, level_loss
from tests.planners.zoo.golden import PLANNERS, Seen, check_gradients, close, read_golden
from tests.shared_data import shared_params

pytestmark = pytest.mark.golden
BUFFERS = (".pe", ".modal", ".agent", "mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias")


@pytest.fixture(params=shared_params(f"{PLANNERS}/gameformer/golden_*.npz"), scope="module")
def case(request):
    golden = read_golden(request.param)
    return golden, golden.load(GameFormer(), left_out=BUFFERS)


def test_outputs_and_intermediates(case):
    golden, network = case
    stages = network.decoder.interaction_stage
    modules = {
        "ego_enc": network.encoder.ego_encoder,
        "lane": network.encoder.lane_encoder,
        "crosswalk": network.encoder.crosswalk_encoder,
        "encoding": network.encoder,
        "content0": network.decoder.initial_predictor,
        "route_tokens": network.planner.route_encoder,
        "controls": network.planner.plan_decoder,
    }
    for i, stage in enumerate(stages, 1):
        modules |= {f"content{i}": stage, f"interaction{i}": stage.interaction_encoder}
    with torch.no_grad(), Seen(modules) as seen:
        output = network(golden.below("in/"))
    for name, value in output.items():
        close(value, golden[f"out/{name}"])
    for name in ("lane", "crosswalk"):
        seen[f"{name}_tokens"], seen[f"{name}_mask"] = seen.pop(name)
    for name in ("encoding", "route_tokens", "content0", "content1", "content2"):
        seen[name] = seen[name][0]
    assert set(seen) == set(golden.names("out/inter/"))
    for name, value in seen.items():
        close(value, golden[f"out/inter/{name}"])


def test_losses_and_gradients(case):
    golden, network = case
    network.zero_grad()
    batch = golden.below("in/")
    output = network(batch)
    losses = gameformer_loss(output, batch)
    for name, value in losses.items():
        if name != "loss":
            close(value, golden[f"out/eval_loss/{name}"], 2e-5, 1e-5)
    for k in range(3):
        levels = output[f"level_{k}_interactions"], output[f"level_{k}_scores"]
        best = level_loss(*levels, batch["ego_future"], batch["neighbors_future"])[1]
        assert torch.equal(best, golden[f"out/eval_loss/level_{k}_best_mode"].long())
    losses["loss"].backward()
    check_gradients(network, golden.arrays["out/grad_norm_names"], golden.arrays["out/eval_loss/grad_norms"])


def test_dynamics(case):
    golden, _ = case
    close(drive(golden["in/dyn_controls"], golden["in/dyn_state"]), golden["out/dyn"])
