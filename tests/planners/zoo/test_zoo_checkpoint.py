"""Published checkpoints: recognised by their keys, read without running anything, refused with one clear error."""

import json
import pickle

import pytest
import torch

import radp
from radp.model.checkpoint import CheckpointError
from radp.planners.zoo.checkpoint import load_folder, load_published, load_zoo_planner, save_folder
from radp.planners.zoo.kinds import KINDS
from radp.planners.zoo.pdm_open import PDMConfig, PDMOpen
from tests.planners.zoo.golden import PLANNERS, read_golden
from tests.shared_data import shared_params


class Tripwire:
    """Unpickling this would create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def lightning(kind, path, **more):
    torch.manual_seed(0)
    state = KINDS[kind].network(KINDS[kind].published).state_dict()
    torch.save({"epoch": 3, "state_dict": {f"model.{k}": v for k, v in state.items()}, **more}, path)
    return state


@pytest.mark.parametrize("kind", KINDS)
def test_recognised_by_its_keys(kind, tmp_path):
    state = lightning(kind, tmp_path / "last.ckpt")
    found, model = load_published(tmp_path / "last.ckpt")
    assert found == kind
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_bare_weights_and_name(tmp_path):
    torch.save(lightning("pdm-open", tmp_path / "a.ckpt"), tmp_path / "mine.pth")
    planner = radp.load_planner(str(tmp_path / "mine.pth"))
    assert (planner.kind.name, planner.name) == ("pdm-open", "mine")


def test_one_error_names_everything_missing_or_misshapen(tmp_path):
    state = lightning("plantf", tmp_path / "a.ckpt")
    del state["norm.weight"]
    state["pos_emb.0.weight"] = torch.zeros(128, 5)
    state["surplus"] = torch.zeros(1)
    torch.save({"state_dict": state}, tmp_path / "a.ckpt")
    with pytest.raises(CheckpointError) as error:
        radp.load_planner(str(tmp_path / "a.ckpt"))
    for part in ("plantf", "missing norm.weight", "unknown surplus", "has shape (128, 5), expected (128, 4)"):
        assert part in str(error.value)


def test_a_stranger_is_refused(tmp_path):
    torch.save({"state_dict": {"model.conv.weight": torch.zeros(3)}}, tmp_path / "a.ckpt")
    with pytest.raises(CheckpointError, match=r"no planner with such weights .*conv\.weight"):
        load_published(tmp_path / "a.ckpt")


def test_nothing_of_a_checkpoint_runs(tmp_path):
    """A class or function that a checkpoint names is never looked up, only replaced."""
    trap = tmp_path / "trap"
    lightning("pdm-open", tmp_path / "a.ckpt", hyper_parameters={"x": Tripwire(trap)})
    assert load_published(tmp_path / "a.ckpt")[0] == "pdm-open"
    assert not trap.exists()
    (tmp_path / "b.ckpt").write_bytes(pickle.dumps({"state_dict": Tripwire(trap)}))
    with pytest.raises(CheckpointError, match="keep its weights alone"):
        load_published(tmp_path / "b.ckpt")
    assert not trap.exists()


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params(f"{PLANNERS}/*/lightning_like_*.ckpt"))
def test_checkpoints_with_foreign_objects(path):
    golden = read_golden(path.with_name(path.name.replace("lightning_like", "golden").replace(".ckpt", ".npz")))
    _, model = load_published(path)
    weights = golden.weights()
    assert set(weights) == set(model.state_dict())
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("kind", KINDS)
def test_our_folders_give_the_same_weights_back(kind, tmp_path):
    model = KINDS[kind].network(KINDS[kind].published)
    save_folder(kind, model, tmp_path)
    assert load_zoo_planner(tmp_path).kind.name == kind
    again = load_folder(tmp_path)
    assert again.config == model.config
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden": 10**9}, "hidden is 1000000000, expected at most"),
        ({"hidden": -8}, "hidden is -8"),
        ({"hidden": "wide"}, "hidden is 'wide', expected int"),
        ({"hidden": 4000}, "is not of the sizes named here"),
        ({"wings": 2}, "wings"),
    ],
)
def test_sizes_that_are_not_those_of_the_weights_are_refused(tmp_path, change, words):
    folder = save_folder("pdm-open", PDMOpen(PDMConfig(hidden=8)), tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    config["model"] |= change
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=words):
        load_folder(folder)
