import json
import zipfile

import pytest
import torch

from radp.model.checkpoint import CheckpointError, check_archive, export_published, load_model, save_model, to_published
from radp.model.config import MINI
from radp.model.network import build_model
from radp.version import __version__
from tests.made_models import SMALL, randomised


def same_weights(one, two):
    states = one.state_dict(), two.state_dict()
    assert list(states[0]) == list(states[1])
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A model in the published layout, and its file."""
    model = randomised(build_model("nuplan", 0).config)
    return model, export_published(model, tmp_path_factory.mktemp("published") / "model.pth")


def test_export_and_import_give_back_the_same_model(published, tmp_path):
    model, path = published
    loaded = load_model(path)
    assert same_weights(model, loaded) and loaded.config == model.config and not loaded.training
    assert loaded.normaliser.to_args() == model.normaliser.to_args()
    again = export_published(loaded, tmp_path / "again.pth")
    first, second = (torch.load(file, weights_only=True) for file in (path, again))
    assert list(first["ema_state_dict"]) == list(second["ema_state_dict"])
    assert len(first["ema_state_dict"]) == 276
    assert all(torch.equal(value, second["model"][name]) for name, value in first["model"].items())
    assert json.loads((tmp_path / "args.json").read_text()) == json.loads(path.with_name("args.json").read_text())
    assert same_weights(model, load_model(path.parent))


def test_unused_fields_of_args_json_survive(published, tmp_path):
    _, path = published
    args = json.loads(path.with_name("args.json").read_text()) | {"map_num": 5, "seed": 3407}
    (tmp_path / "args.json").write_text(json.dumps(args))
    (tmp_path / "model.pth").write_bytes(path.read_bytes())
    export_published(load_model(tmp_path), tmp_path / "out" / "model.pth")
    assert json.loads((tmp_path / "out" / "args.json").read_text()) == args


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: {"model": s}, lambda s: {"model": {}, "ema_state_dict": s}])
def test_every_published_wrapping_is_read(published, tmp_path, prefix, wrap):
    model, path = published
    state = {prefix + name: value for name, value in to_published(model.state_dict()).items()}
    torch.save(wrap(state), tmp_path / "model.pth")
    (tmp_path / "args.json").write_text(path.with_name("args.json").read_text())
    assert same_weights(model, load_model(tmp_path / "model.pth"))


def test_one_error_lists_every_bad_key(published, tmp_path):
    model, path = published
    state = to_published(model.state_dict())
    del state["encoder.encoder.pos_emb.bias"]
    state["decoder.extra"] = torch.zeros(1)
    name = "decoder.decoder.dit.blocks.1.attn.in_proj_weight"
    state[name] = state[name][:100]
    state["encoder.encoder.pos_emb.weight"] = 3.0
    torch.save({"model": state}, tmp_path / "model.pth")
    (tmp_path / "args.json").write_text(path.with_name("args.json").read_text())
    with pytest.raises(CheckpointError) as error:
        load_model(tmp_path / "model.pth")
    for line in (
        "model.pth",
        "missing encoder.encoder.pos_emb.bias",
        "unknown decoder.extra",
        f"{name} has shape (100, 192), expected (576, 192)",
        "encoder.encoder.pos_emb.weight is a float",
    ):
        assert line in str(error.value)


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


def test_pickled_code_does_not_run(tmp_path, capsys, published):
    torch.save({"model": Evil()}, tmp_path / "model.pth")
    (tmp_path / "args.json").write_text(published[1].with_name("args.json").read_text())
    with pytest.raises(CheckpointError, match="not a plain weights file"):
        load_model(tmp_path / "model.pth")
    assert "must not run" not in capsys.readouterr().out


def test_bad_files_are_named(tmp_path, published):
    with pytest.raises(FileNotFoundError, match="nothing"):
        load_model(tmp_path / "nothing")
    torch.save({}, tmp_path / "model.pth")
    with pytest.raises(CheckpointError, match=r"args\.json"):
        load_model(tmp_path / "model.pth")
    args = json.loads(published[1].with_name("args.json").read_text())
    for change, words in (({"state_normalizer": None}, "args.json"), ({"predicted_neighbor_num": 4}, "11 rows")):
        (tmp_path / "args.json").write_text(json.dumps(args | change))
        with pytest.raises(CheckpointError, match=words):
            load_model(tmp_path / "model.pth")


def test_our_own_folder_round_trips_with_all_it_carries(tmp_path):
    model = randomised(MINI)
    save_model(model, tmp_path / "mini", training={"run": "base", "steps": 12}, commit="abc")
    loaded = load_model(tmp_path / "mini")
    assert same_weights(model, loaded) and loaded.config == MINI
    assert loaded.about == {"radp_version": __version__, "commit": "abc", "training": {"run": "base", "steps": 12}}
    assert loaded.normaliser.to_args() == model.normaliser.to_args()
    assert sorted(file.name for file in (tmp_path / "mini").iterdir()) == ["config.json", "model.safetensors"]
    with pytest.raises(ValueError, match="no place for"):
        export_published(model, tmp_path / "x.pth")


def test_a_folder_of_another_size_is_refused(tmp_path):
    save_model(randomised(SMALL), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["model"]["hidden"] = 64
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"encoder\.pos_emb\.weight has shape \(32, 7\), expected \(64, 7\)"):
        load_model(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(published, tmp_path, value):
    model = randomised(SMALL)
    name, weights = next((name, w) for name, w in model.named_parameters() if w.ndim == 2)
    with torch.no_grad():
        weights[0, 0] = value
    with pytest.raises(CheckpointError, match=f"{name} holds a value that is not finite"):
        load_model(save_model(model, tmp_path / "ours"))
    state = torch.load(published[1], weights_only=True)["model"]
    next(iter(state.values())).view(-1)[0] = value
    torch.save(state, tmp_path / "model.pth")
    (tmp_path / "args.json").write_text(published[1].with_name("args.json").read_text())
    with pytest.raises(CheckpointError, match="holds a value that is not finite"):
        load_model(tmp_path / "model.pth")


@pytest.mark.parametrize(
    ("part", "value"), [("mean", float("nan")), ("std", float("inf")), ("std", 0.0), ("std", -1.0)]
)
def test_a_normaliser_that_cannot_be_used_is_refused(tmp_path, part, value):
    folder = save_model(randomised(SMALL), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["normaliser"]["state_normalizer"][part][0][0][0] = value
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="means must be finite, and deviations positive"):
        load_model(folder)


@pytest.mark.parametrize(
    ("whose", "name", "value", "words"),
    [
        ("state_normalizer", "mean", 3.0, "expected a row of 4 each"),
        ("state_normalizer", "std", [[[1.0]]], "expected a row of 4 each"),
        ("observation_normalizer", "lanes", {"mean": [0.0], "std": [1.0]}, "expected 12"),
        ("observation_normalizer", "lanes", {"mean": [0.0] * 12, "std": 1.0}, "expected 12"),
        ("observation_normalizer", "batch_size", {"mean": [0.0], "std": [1.0]}, "a scene has no 'batch_size'"),
    ],
)
def test_a_normaliser_of_another_shape_is_refused(tmp_path, whose, name, value, words):
    folder = save_model(randomised(SMALL), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["normaliser"][whose][name] = value
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=words):
        load_model(folder)


def test_an_archive_out_of_which_more_comes_than_lies_in_it_is_refused(tmp_path):
    """torch writes its archives without packing; a packed one could stand for any number of gigabytes."""
    torch.save({"x": torch.zeros(10_000)}, tmp_path / "plain.pth")
    check_archive(tmp_path / "plain.pth")
    with (
        zipfile.ZipFile(tmp_path / "plain.pth") as plain,
        zipfile.ZipFile(tmp_path / "packed.pth", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    with pytest.raises(CheckpointError, match=r"packed\.pth: not a plain weights file: its parts are packed"):
        check_archive(tmp_path / "packed.pth")
