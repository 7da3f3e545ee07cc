import math

import pytest
import torch

from radp.model.config import MINI, NUPLAN, ModelConfig
from radp.model.encoder import lane_positions
from radp.model.network import build_model, parameter_count
from radp.scene.scene import Scene
from tests.made_models import ONE_PASS, SMALL, randomised
from tests.made_scenes import made_scene


def test_the_published_number_of_parameters():
    model = build_model("nuplan", 0)
    assert parameter_count(model) == 6_042_628
    assert parameter_count(model.encoder) == 1_799_040
    assert parameter_count(model.decoder) == 4_243_588
    assert not list(model.buffers())


@pytest.mark.parametrize("preset", ["nuplan", "mini"])
def test_a_new_model_answers_exactly_zero(preset):
    model = build_model(preset, 1).eval()
    scene = model.observe(made_scene(batch=2))
    x = torch.randn(2, model.config.predicted, 81, 4)
    with torch.no_grad():
        assert not model(scene, x, torch.tensor([0.3, 0.9])).any()


def test_initial_weights_have_the_published_spread():
    model = build_model("nuplan", 0)
    block = model.decoder.blocks[0]
    packed, square = math.sqrt(6 / (192 + 576)), math.sqrt(6 / (192 + 192))
    for linear, bound in ((block.attn.q, packed), (block.cross_attn.v, packed), (block.attn.o, square)):
        assert 0.99 * bound < linear.weight.abs().max() <= bound
    normals = [
        model.encoder.pos_emb,
        model.encoder.neighbor_encoder.type_emb,
        model.encoder.lane_encoder.traffic_emb,
        model.decoder.time_embedding.fc1,
        model.decoder.agent_embedding,
    ]
    for module in normals:
        assert float(module.weight.detach().std()) == pytest.approx(0.02, rel=0.15)
    assert not block.modulation.weight.any() and not model.decoder.final_layer.fc2.weight.any()
    biases = [value for name, value in model.named_parameters() if name.endswith("bias")]
    assert not any(bias.any() for bias in biases)


def test_a_seed_gives_the_same_weights_and_leaves_the_default_generator_alone():
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    one, two, other = build_model(SMALL, 5), build_model(SMALL, 5), build_model(SMALL, 6)
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(one.encoder.pos_emb.weight, two.encoder.pos_emb.weight)
    assert not torch.equal(one.encoder.pos_emb.weight, other.encoder.pos_emb.weight)


def test_samples_of_a_batch_do_not_touch_each_other():
    model = randomised(SMALL)
    scene = made_scene(batch=4)
    x, time = torch.randn(4, 11, 81, 4), torch.tensor([0.1, 0.4, 0.6, 1.0])
    with torch.no_grad():
        together = model(model.observe(scene), x, time)
        alone = [model(model.observe(scene[i]), x[i : i + 1], time[i : i + 1]) for i in range(4)]
    torch.testing.assert_close(together, torch.cat(alone), **ONE_PASS)


def test_an_empty_scene_gives_finite_numbers():
    scene = made_scene(batch=2).without_future()
    empty = {name: torch.zeros_like(value) for name, value in scene.items()}
    empty["ego_current_state"] = scene.ego_current_state
    model = randomised(SMALL)
    with torch.no_grad():
        out = model(model.observe(Scene(**empty)), torch.randn(2, 11, 81, 4), torch.tensor([0.2, 0.8]))
    assert torch.isfinite(out).all()


def test_gradients_do_not_change_what_is_computed():
    model = randomised(SMALL)
    scene, x, time = model.observe(made_scene(batch=3)), torch.randn(3, 11, 81, 4), torch.full((3,), 0.5)
    with torch.no_grad():
        quick = model(scene, x, time)
    torch.testing.assert_close(model(scene, x, time).detach(), quick, **ONE_PASS)


def test_a_padded_lane_points_along_x():
    assert lane_positions(torch.zeros(1, 1, 20, 12))[0, 0].tolist() == [0, 0, 1, 0, 0, 0, 1]


def test_lora_meets_exactly_twelve_modules():
    peft = pytest.importorskip("peft")
    for preset in ("nuplan", "mini"):
        model = build_model(preset, 0)
        wrapped = peft.get_peft_model(
            model, peft.LoraConfig(r=8, target_modules=["mlp1.fc1", "mlp1.fc2", "mlp2.fc1", "mlp2.fc2"])
        )
        trained = {name for name, parameter in wrapped.named_parameters() if parameter.requires_grad}
        assert len(trained) == 24 and all(".decoder.blocks." in name for name in trained)
        assert len({name.split(".lora_")[0] for name in trained}) == 12


def test_config_json_round_trip_and_faults():
    for config in (NUPLAN, MINI):
        assert ModelConfig.from_json(config.to_json()) == config
    assert ModelConfig.from_args(NUPLAN.to_args()) == NUPLAN
    with pytest.raises(ValueError, match="target_space"):
        MINI.to_args()
    with pytest.raises(ValueError, match="unknown settings width"):
        ModelConfig.from_json({"width": 3})
    with pytest.raises(ValueError, match=r"heads 5.*output is 'noise'"):
        ModelConfig(heads=5, output="noise")
    with pytest.raises(ValueError, match="no model preset"):
        ModelConfig.preset("huge")


def test_mini_has_three_dit_blocks_and_fits_into_the_package():
    model = build_model("mini", 0)
    assert len(model.decoder.blocks) == 3 and 4 * parameter_count(model) < 12e6


def test_the_normaliser_moves_with_the_weights():
    model = build_model(SMALL, 0).to("meta")
    assert model.normaliser.state.mean.device.type == "meta"
    assert all(mean.device.type == "meta" for mean, _ in model.normaliser.observation.moments.values())
