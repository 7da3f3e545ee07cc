"""planTF against every number of the published network's golden files."""

import pytest
import torch

from radp.planners.zoo.plantf import PlanTF, PlanTFConfig, best_plan, plantf_loss
from tests.planners.zoo.golden import PLANNERS, Seen, check_gradients, close, close_poses, read_golden
from tests.shared_data import shared_params

pytestmark = pytest.mark.golden
SHOWN = 12  # agents whose history is given level by level


@pytest.fixture(params=shared_params(f"{PLANNERS}/plantf/golden_*.npz"), scope="module")
def golden(request):
    return read_golden(request.param)


def network_of(golden):
    return golden.load(PlanTF(PlanTFConfig(drop_path=0.0)))


def caught(network):
    history = network.agent_encoder.history_encoder
    modules = {
        "pos_embed": network.pos_emb,
        "hist_tokens": history.embed["proj"],
        "hist_out": history,
        "ego_state_emb": network.agent_encoder.ego_state_emb,
        "agent_tokens": network.agent_encoder,
        "polygon_encoder": network.map_encoder.polygon_encoder,
        "map_tokens": network.map_encoder,
        "enc_norm": network.norm,
    }
    for i, level in enumerate(history.levels):
        modules |= {f"hist_level{i}": level, f"hist_level{i}_block0_natten": level.blocks[0].attn}
        modules[f"hist_lateral{i}"] = history.lateral_convs[i]
    return modules | {f"enc_block{i}": block for i, block in enumerate(network.encoder_blocks)}


def test_outputs_and_intermediates(golden):
    network = network_of(golden)
    batch = golden.below("in/")
    with torch.no_grad(), Seen(caught(network)) as seen:
        output = network(batch)
    for name, value in output.items():
        close(value, golden[f"out/eval/{name}"])
    close_poses(best_plan(output), golden["out/eval/output_trajectory"])
    valid = batch["agent/valid_mask"][:, :, :21].any(-1)
    seen["hist_input"] = network.agent_encoder.changes(batch)[valid]
    seen["hist_tokens"] = seen["hist_tokens"].transpose(1, 2)
    for i in range(3):
        seen[f"hist_level{i}"] = seen[f"hist_level{i}"][0]
    assert set(seen) == set(golden.names("out/inter/"))
    for name, value in seen.items():
        expected = golden[f"out/inter/{name}"]
        close(value[:SHOWN] if name.startswith("hist_") and name != "hist_out" else value, expected)


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_losses_and_gradients(golden, mode):
    network = network_of(golden)
    if mode == "train":
        network.train()
    batch = golden.below("in/")
    output = network(batch, batch["state_dropout_uniform"])
    losses = plantf_loss(output, batch)
    for name, value in losses.items():
        close(value, golden[f"out/{mode}_loss/{name}"], 1e-5, 1e-5)
    losses["loss"].backward()
    norms = golden.arrays[f"out/{mode}_loss/grad_norms"]
    check_gradients(network, golden.arrays["out/grad_norm_names"], norms)
    bias = network.trajectory_decoder.loc[3].bias.grad
    close(bias, golden[f"out/{mode}_loss/grad/trajectory_decoder.loc.3.bias"])
    if mode == "train":
        for name in output:
            close(output[name], golden[f"out/train_loss/{name}"])
        state = network.state_dict()
        for name, value in golden.below("out/train_loss/after/").items():
            close(state[name], value)
