"""Exported planners answer as torch does: any batch, scenes with nothing in them, in the closed loop and out of it."""

import json
import shutil
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.evaluation.closed_loop import run_simulation
from radp.evaluation.settings import Simulation
from radp.model import onnx_export
from radp.model.checkpoint import export_published
from radp.model.config import MINI
from radp.model.graphs import LoopGraph
from radp.model.head import AttributionHead, HeadConfig
from radp.model.onnx_export import export_onnx
from radp.model.sampler import noise_of_seeds, sample_plans
from radp.planners.backends import on_backend, settled_backend
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.export import export_planner
from radp.planners.learned import load_learned, load_planner_model
from radp.planners.onnx import OnnxPlanner
from radp.planners.registry import load_planner
from radp.runs.errors import BadInput
from radp.runtime.runtime import NoPlan, Runtime
from radp.runtime.solver import close_seam
from radp.scenario.splits import open_split
from radp.scene.builder import SceneConfig, build_scenes
from radp.scene.scene import INPUT_FIELDS, Scene
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from radp.zoo import MODELS
from tests.diffusion_planner_golden import PATTERN, read_golden
from tests.made_models import SMALL, randomised
from tests.made_scenes import made_scene
from tests.shared_data import shared_params

for needed in ("onnxruntime", "onnx", "onnxscript"):
    pytest.importorskip(needed, reason=f'{needed} is not installed: pip install "radp[onnx]"')

TINY = replace(
    MINI, hidden=16, heads=2, agents=8, lanes=10, route_lanes=4, encoder_depth=1, decoder_depth=1, mixer_channels=16,
    preproj_hidden=16,
)  # fmt: skip
RULES = ("collision", "comfort")


def planner_of(config):
    head = AttributionHead(HeadConfig(config.hidden, RULES, heads=2, hidden=8)).eval()
    return DiffusionPlanner(randomised(config), "made", head=head)


def scenes(config, batch):
    """Scenes of the model's size: one without agents, one without static objects, one without lanes."""
    scene = made_scene(batch).crop(config.agents, config.static_objects, config.lanes, config.route_lanes)
    scene.neighbor_agents_past[:1] = 0
    scene.static_objects[1:2] = 0
    for name in ("lanes", "lanes_speed_limit", "route_lanes", "route_lanes_speed_limit"):
        getattr(scene, name)[2:3] = 0
    return replace(scene.without_future(), agent_tracks=None)


def arrays(scene: Scene):
    return {name: getattr(scene, name).numpy() for name in INPUT_FIELDS}


def agrees(planner, runtime, batch, tolerance=1e-4, scene=None):
    """Plans within the tolerance of torch's, in metres for each 10 m of the longest; pressures of jerk
    and contact amplify the rounding of their plan: a few thousandths of a pressure."""
    scene = scenes(planner.model.config, batch) if scene is None else scene
    noise = noise_of_seeds(range(batch), planner.model)
    drawn = planner.draw(scene, noise)
    joint, pressures = runtime.run(arrays(scene), noise[:, 0].numpy())
    expected = drawn.trajectories[:, 0]
    np.testing.assert_allclose(joint, expected, atol=tolerance * max(1.0, float(expected.abs().max()) / 10.0))
    if planner.head is not None:
        np.testing.assert_allclose(pressures, planner.pressures(drawn, scene), rtol=3e-3, atol=5 * tolerance)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    planner, folder = planner_of(TINY), tmp_path_factory.mktemp("export")
    export_onnx(planner.model, folder, scenes(TINY, 2), planner.head, {"planner": "made"})
    return planner, folder


@pytest.fixture(scope="module")
def runtime(exported):
    return Runtime(exported[1])


@pytest.mark.parametrize("batch", [1, 2, 3, 32])
def test_an_export_plans_as_torch_does(exported, runtime, batch):
    agrees(exported[0], runtime, batch)


def test_the_manifest_says_what_goes_in_and_comes_out(exported, runtime):
    said = json.loads((exported[1] / "manifest.json").read_text())
    assert said["version"] == "1.1" and said["opset"] >= 18 and said["rules"] == list(RULES)
    assert runtime.manifest.inputs("encoder")["lanes"] == ("float32", (10, 20, 12))
    assert runtime.manifest.inputs("encoder")["lanes_has_speed_limit"] == ("bool", (10, 1))
    assert runtime.manifest.outputs("step") == ["clean", "ego_token"]


def test_one_plan_and_a_deadline(exported):
    runtime = Runtime(exported[1])
    scene = {name: value[0] for name, value in arrays(scenes(TINY, 1)).items()}
    ticks = iter(range(1000))
    with pytest.raises(NoPlan):
        runtime.plan(scene, deadline=3.0, clock=lambda: float(next(ticks)))
    first = runtime.plan(scene, clock=lambda: float(next(ticks)))
    assert first.trajectory.shape == (80, 4) and first.predictions.shape == (6, 80, 4) and not first.stale
    assert set(first.pressures) == set(RULES) and {one.rule for one in first.status} == {*RULES, "speed"}
    late = runtime.plan(scene, deadline=3.0, clock=lambda: float(next(ticks)))
    scene["ego_current_state"] = np.full_like(scene["ego_current_state"], np.nan)
    assert "finite" in runtime.plan(scene).stale
    assert "deadline" in late.stale and late.age > 0 and np.array_equal(late.trajectory, first.trajectory)


def changed(runtime, **values):
    """The same graphs under another manifest."""
    other = copy(runtime)
    other.manifest = replace(runtime.manifest, **values)
    return other


def test_the_seam_is_closed_if_the_model_asks_for_it(runtime):
    scene, noise = arrays(scenes(TINY, 2)), runtime.draw_noise(2)
    plain, _ = runtime.run(scene, noise)
    values = {**runtime.manifest.values, "model": {**runtime.manifest.size, "seam_s": 0.5}}
    closed, _ = changed(runtime, values=values).run(scene, noise)
    np.testing.assert_array_equal(closed[:, 0], close_seam(plain[:, 0], scene["ego_current_state"][:, 4], 0.5))
    np.testing.assert_array_equal(closed[:, 1:], plain[:, 1:])


def test_wrong_arrays_and_an_answer_that_changed_are_refused(runtime):
    scene = arrays(scenes(TINY, 1))
    with pytest.raises(BadInput, match="lanes has shape"):
        runtime.run({**scene, "lanes": scene["lanes"][:, :3]}, runtime.draw_noise(1))
    schedule = runtime.manifest.schedule
    other = changed(runtime, schedule=replace(schedule, take=schedule.take * 0.9))
    with pytest.raises(BadInput, match="answers otherwise"):
        other.check()


def test_an_export_is_a_planner_in_the_closed_loop(exported, tmp_path):
    name = f"onnx:{exported[1]}"
    assert load_planner(name).name == "made"
    run = run_simulation(
        Simulation(planner=name, scenarios="sumo14-val", limit=1, agents="nonreactive"), tmp_path / "run"
    )
    assert [rollout.failure for rollout in run.rollouts()] == [None]
    assert run.folder.settings["planner_hash"] and run.folder.settings["backend"] == "torch"


def test_a_backend_is_settled_by_what_the_planner_is(exported, tmp_path):
    planner, rule_based = exported[0], load_planner("constant_velocity")
    assert settled_backend(planner, "auto") == "onnx" and settled_backend(rule_based, "auto") == "torch"
    assert settled_backend(planner, "torch") == "torch" and on_backend(planner, "torch") is planner
    with pytest.raises(BadInput, match="no diffusion planner"):
        settled_backend(rule_based, "onnx")
    with pytest.raises(BadInput, match="expected one of"):
        settled_backend(planner, "abacus")
    listening = planner.with_weight_input(("collision",)).with_weights({"collision": 2.0})
    assert settled_backend(listening, "auto") == "torch"
    with pytest.raises(BadInput, match="weights of rules"):
        export_planner(listening, tmp_path)


def looking(exported, kind):
    """The exported model with a head that looks at a kind of geometry."""
    torch.manual_seed(0)
    head = AttributionHead(HeadConfig(TINY.hidden, RULES, heads=2, hidden=8, geometry=kind)).eval()
    return DiffusionPlanner(exported[0].model, "made", head=head)


def crossings():
    """Two moments on roads, which are smoother than those of `scenes`."""
    return observe_logs([make_scenario(seed, agents=12, turn=turn) for seed, turn in enumerate(("left", "right"))], 20)


@pytest.fixture(scope="module")
def geometric(exported, tmp_path_factory):
    """An export whose head looks at the cheap geometry; encoder and step are those of the other one."""
    planner, folder = looking(exported, "cheap"), tmp_path_factory.mktemp("geometric")
    made, write = json.loads((exported[1] / "manifest.json").read_text())["graphs"], onnx_export._write_graph

    def reuse(graph, path):
        if path.stem == "head":
            return write(graph, path)
        shutil.copy(exported[1] / path.name, path)
        return made[path.stem]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_export, "_write_graph", reuse)
        return planner, export_onnx(planner.model, folder, build_scenes(crossings(), planner.scenes), planner.head)


def test_the_runtime_gives_the_pressures_of_torch(geometric):
    """From the arrays of the scene alone, for any batch; rows beyond the model's size do not count."""
    planner, alone = geometric[0], Runtime(geometric[1])
    assert alone.manifest.inputs("head")["geometry"] == ("float32", (131,))
    given = replace(build_scenes(crossings(), planner.scenes), rules=None)
    more = build_scenes(crossings(), SceneConfig(ego_dynamics=True))
    assert more.neighbor_agents_past.shape[1] > TINY.agents
    for rows in (slice(0, 1), slice(0, 2)):
        noise = noise_of_seeds(range(len(given[rows])), planner.model)
        expected = planner.pressures(planner.draw(given[rows], noise), given[rows])
        wide = {**arrays(given[rows]), "neighbor_agents_past": more[rows].neighbor_agents_past.numpy()}
        np.testing.assert_allclose(alone.run(wide, noise[:, 0].numpy())[1], expected, atol=1e-4)
    one = {name: value[0] for name, value in arrays(given).items()}
    assert set(alone.plan(one).pressures) == set(RULES)


def test_the_closed_loop_gives_the_pressures_of_torch(geometric):
    """There the head looks at what the rules see, which is more than the model sees."""
    planner, other, now = geometric[0], OnnxPlanner(geometric[1]), crossings()
    assert other.scenes == planner.scenes and other.scenes.rules
    expected, found = planner.plan(now), other.plan(now)
    torch.testing.assert_close(found.trajectory, expected.trajectory, atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(found.pressure, expected.pressure, atol=1e-4, rtol=0)
    plain = other.plan_scene(replace(build_scenes(now, other.scenes), rules=None), now.seeds)
    assert float((plain.pressure - expected.pressure).abs().max()) > 1e-3


def test_only_the_full_geometry_keeps_a_planner_in_torch(exported, tmp_path):
    for kind, backend in (("cheap", "onnx"), ("full", "torch")):
        assert settled_backend(looking(exported, kind), "auto") == backend
    planner = looking(exported, "full")
    with pytest.raises(BadInput, match="full geometry"):
        settled_backend(planner, "onnx")
    with pytest.raises(BadInput, match="the cheap one can"):
        export_onnx(planner.model, tmp_path, build_scenes(crossings(), planner.scenes), planner.head)


@pytest.mark.parametrize(
    "said",
    [{"head": {"geometry": ""}}, {"head": {"geometry": "cheap"}, "vehicle": {}}, {"vehicle": {"length": "long"}}],
)
def test_a_manifest_that_does_not_fit_its_head_is_refused_in_one_sentence(geometric, tmp_path, said):
    folder = shutil.copytree(geometric[1], tmp_path / "export")
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | said))
    with pytest.raises(BadInput, match="not a readable golden pair") as error:
        Runtime(folder)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_the_loop_in_one_graph(exported, tmp_path):
    import onnxruntime

    model = exported[0].model
    export_onnx(model, tmp_path, scenes(TINY, 2), loop=True)
    session = onnxruntime.InferenceSession(str(tmp_path / "loop.onnx"), providers=["CPUExecutionProvider"])
    for batch in (1, 3):
        scene, noise = scenes(TINY, batch), noise_of_seeds(range(batch), model)
        expected = sample_plans(model, scene, noise=noise).trajectories[:, 0]
        found = session.run(None, {"noise": noise[:, 0].numpy(), **arrays(scene)})[0]
        np.testing.assert_allclose(found, expected, atol=1e-4 * max(1.0, float(expected.abs().max()) / 10.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diffusion-planner-mini", "radp-mini"])
@pytest.mark.parametrize("provider", ["onnx", "openvino"])
def test_packaged_planners_and_those_with_merged_adapters(name, provider, tmp_path):
    pytest.importorskip("openvino" if provider == "openvino" else "onnxruntime", reason=f"{provider} is not installed")
    planner = load_learned(MODELS / name)
    real = build_scenes(observe_logs(list(open_split("sumo14-val@every-8")[:32]), 20), planner.scenes)
    export_onnx(planner.model, tmp_path, real, planner.head)
    runtime = Runtime(tmp_path, provider)
    for batch in (1, 2, 3, 32):
        agrees(planner, runtime, batch, scene=replace(real[list(range(batch))], rules=None))


@pytest.mark.slow
def test_the_published_layout(tmp_path):
    """Unmasked cross-attention, mixers and waypoints, as in a published .pth."""
    planner = DiffusionPlanner(randomised(SMALL), "published")
    export_onnx(planner.model, tmp_path, scenes(SMALL, 2))
    for batch in (1, 3):
        agrees(planner, Runtime(tmp_path), batch)


@pytest.mark.slow
@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params(PATTERN))
def test_a_published_checkpoint(path, tmp_path):
    export_published(read_golden(path).model(), tmp_path / "model.pth")
    model = load_planner_model(tmp_path / "model.pth")
    planner = DiffusionPlanner(model, "golden")
    export_onnx(model, tmp_path, scenes(model.config, 2))
    agrees(planner, Runtime(tmp_path), 3)


@torch.no_grad()
def test_graphs_in_torch_are_the_model():
    model, scene = randomised(TINY), scenes(TINY, 3)
    noise = noise_of_seeds(range(3), model)
    joint = LoopGraph(model, 10, 0.5)(noise[:, 0], *(getattr(scene, name) for name in INPUT_FIELDS))[0]
    expected = sample_plans(model, scene, noise=noise).trajectories[:, 0]
    torch.testing.assert_close(joint, expected, atol=1e-3, rtol=1e-4)
