"""PLUTO's network and losses against every number of the published ones' golden files."""

import pytest
import torch

from radp.planners.zoo.pluto import Pluto, PlutoConfig, plans
from radp.planners.zoo.pluto_loss import pluto_loss
from radp.planners.zoo.tokens import PAST
from tests.planners.zoo.golden import PLANNERS, Seen, check_gradients, close, close_poses, read_golden
from tests.shared_data import shared_params

pytestmark = pytest.mark.golden
LINES = ("reference_line/", "map/", "agent/", "static_objects/")


@pytest.fixture(params=shared_params(f"{PLANNERS}/pluto/golden_*.npz"), scope="module")
def golden(request):
    return read_golden(request.param)


def network_of(golden, batch_slip=True):
    return golden.load(Pluto(PlutoConfig(drop_path=0.0, dropout=0.0, published_batch_mask=batch_slip)))


def alone(batch, i):
    """Sample i without the padding of its batch, history only: what the planner sees."""
    one = {name: value[i : i + 1] for name, value in batch.items() if name != "data_n_valid_mask"}
    masks = {"agent/": "agent/valid_mask", "map/": "map/valid_mask", "reference_line/": "reference_line/valid_mask"}
    for prefix in LINES:
        valid = one[masks.get(prefix, "static_objects/valid_mask")][0]
        count = int((valid.flatten(1).any(1) if valid.ndim > 1 else valid).sum())
        for name in one:
            if name.startswith(prefix):
                one[name] = one[name][:, :count]
    for name in ("position", "heading", "velocity", "shape", "valid_mask"):
        one[f"agent/{name}"] = one[f"agent/{name}"][:, :, :PAST]
    return one


def check_outputs(output, golden, prefix):
    for name in golden.names(prefix):
        check = close_poses if name.startswith(("output_", "candidate_")) else close
        check(output[name], golden[prefix + name])


def test_outputs_and_intermediates(golden):
    network, batch = network_of(golden), golden.below("in/")
    decoder = network.planning_decoder
    modules = {
        "agent_tokens": network.agent_encoder,
        "polygon_encoder": network.map_encoder.polygon_encoder,
        "speed_limit_emb": network.map_encoder.speed_limit_emb,
        "map_tokens": network.map_encoder,
        "static_tokens": network.static_objects_encoder,
        "pos_embed": network.pos_emb,
        "enc_norm": network.norm,
        "r_encoder": decoder.r_encoder,
        "r_pos_emb": decoder.r_pos_emb,
        "q_proj": decoder.q_proj,
        "cat_x": decoder.cat_x_proj,
    }
    modules |= {f"enc_block{i}": block for i, block in enumerate(network.encoder_blocks)}
    modules |= {f"dec_block{i}": block for i, block in enumerate(decoder.decoder_blocks)}
    with torch.no_grad(), Seen(modules) as seen:
        output = network(batch)
        output |= plans(output, batch)
    assert set(seen) == set(golden.names("out/inter/"))
    for name, value in seen.items():
        close(value, golden[f"out/inter/{name}"])
    check_outputs(output, golden, "out/eval/")


def test_samples_alone_and_in_a_batch(golden):
    """Without the published slip a sample's plan is the same alone and among others."""
    network, batch = network_of(golden, batch_slip=False), golden.below("in/")
    with torch.no_grad():
        whole = plans(network(batch), batch)
        for i in range(4):
            one = alone(batch, i)
            output = network(one)
            output |= plans(output, one)
            check_outputs(output, golden, f"out/single{i}/")
            close_poses(whole["output_trajectory"][i : i + 1], output["output_trajectory"])


def test_without_reference_lines(golden):
    network, one = network_of(golden), alone(golden.below("in/"), 0)
    none = {name: value[:, :0] if name.startswith("reference_line/") else value for name, value in one.items()}
    with torch.no_grad():
        output = plans(network(none), none)
    check_outputs(output, golden, "out/single0_noref/")


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_losses_and_gradients(golden, mode):
    network, batch = network_of(golden), golden.below("in/")
    if mode == "train":
        network.train()
    output = network(batch, batch["state_dropout_uniform"])
    losses = pluto_loss(output, batch, contrast=mode == "train")
    for name, value in losses.items():
        close(value, golden[f"out/{mode}_loss/{name}"], 2e-5, 1e-5)
    losses["loss"].backward()
    norms = golden.arrays[f"out/{mode}_loss/grad_norms"]
    check_gradients(network, golden.arrays["out/grad_norm_names"], norms)
    if mode == "train":
        for name in ("trajectory", "prediction", "hidden", "ref_free_trajectory"):
            close(output[name], golden[f"out/train_loss/{name}"])
        for name, value in golden.below("out/train_loss/after/").items():
            close(network.state_dict()[name], value)
