"""radp train: base, align, head."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from radp.model.config import ModelConfig
from radp.runs.errors import BadInput
from radp.training.settings import AlignConfig, BaseConfig, BaseRecipe, FocusSearch, HeadTraining, LoopConfig

if TYPE_CHECKING:
    from radp.scenario import Scenario
    from radp.scene.builder import SceneConfig
    from radp.scene.samples import Samples


def _spread(split: str | None, count: int) -> Sequence[Scenario]:
    """`count` scenarios of a split, spread evenly over it."""
    from radp.scenario.splits import open_split

    if split is None:
        return []
    scenarios = open_split(split)
    count = min(count, len(scenarios))
    return [scenarios[i * len(scenarios) // count] for i in range(count)]


def _switched(model: ModelConfig, switches: Sequence[str]) -> ModelConfig:
    """The model with some settings changed: NAME=VALUE each, values as in JSON; a bare word is text."""
    changed = model.to_json()
    for switch in switches:
        name, equals, text = switch.partition("=")
        if not equals:
            raise BadInput(f"{switch!r} is no NAME=VALUE")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        usual = changed.get(name, value)
        if any(isinstance(value, kind) != isinstance(usual, kind) for kind in (str, bool)):
            raise BadInput(f"{name} is {json.dumps(value)}, expected something like {json.dumps(usual)}")
        changed[name] = value
    try:
        return type(model).from_json(changed)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None


@dataclass(frozen=True, kw_only=True)
class Training:
    """What is looked at while training, and on how many processors."""

    validation: Path | None = None
    """Samples for the validation loss, of other road networks."""
    closed_loop: str | None = None
    """Split or store whose scenarios are driven while training."""
    closed_loop_scenarios: int = 28
    """How many of these, spread evenly."""
    threads: int = 2
    """Torch threads of each process."""
    processes: int = 1
    """Share each batch among this many; on a CPU, two of one thread are faster than one of two."""
    stop_after: int | None = None
    """Stop at this step as if interrupted, the schedule still reaching to the last one."""

    def shared(self, verb: TrainBase | TrainAlign) -> int:
        """The verb in several processes."""
        from radp.runs.processes import share

        batch = verb.config.loop.batch
        if batch % self.processes:
            raise BadInput(f"a batch of {batch} cannot be shared by {self.processes} processes")
        share(replace(verb, training=replace(self, processes=1)), self.processes)
        return 0

    def watched(self, scenes: SceneConfig) -> tuple[Samples | None, Sequence[Scenario]]:
        """Held-out samples and scenarios to drive."""
        from radp.training.data import open_samples

        held_out = None if self.validation is None else open_samples(self.validation, scenes)
        return held_out, _spread(self.closed_loop, self.closed_loop_scenarios)


@dataclass(frozen=True, kw_only=True)
class TrainBase:
    """Train a diffusion planner from scratch, or go on where the same command was stopped.

    `data` are folders of samples made by `radp data samples`, or of the published .npz files. Checkpoints are
    written to OUT/state, the averaged weights to OUT/model at the end. Works under `accelerate launch` as well.

    Example:
        radp train base --data runs/samples --preset mini --steps 50000 --out runs/base
        radp train base --data runs/samples runs/driven --shares 0.6 0.4 --start-from diffusion-planner-mini \\
            --schedule constant --decay 2000 --out runs/more
    """

    data: tuple[Path, ...]
    """Samples to learn from; several folders share every batch."""
    out: Path
    """Run folder; the same command resumes it."""
    shares: tuple[float, ...] = ()
    """Share of each folder in a batch; by its number of samples when not given."""
    preset: Literal["mini", "nuplan"] = "mini"
    """Model size: mini for two cores, nuplan as published."""
    switches: tuple[str, ...] = ()
    """NAME=VALUE each, as route_tokens=false: settings of the model that differ from the preset or, if its weights
    allow it, from the model to start from.
    """
    start_from: Path | None = None
    """A packaged model, model folder or .pth to go on from instead of random weights."""
    config: BaseRecipe = field(default_factory=lambda: BaseRecipe(loop=LoopConfig(validate_every=5_000)))
    training: Training = field(default_factory=Training)

    def __call__(self) -> int:
        if self.training.processes > 1:
            return self.training.shared(self)
        import torch

        from radp.model.checkpoint import load_model
        from radp.model.network import extended
        from radp.model.paths import model_path
        from radp.planners.diffusion import scene_config
        from radp.runs.folder import RunFolder
        from radp.scene.builder import SHORTEST_FUTURE
        from radp.training.base import train_base
        from radp.training.data import Mixture, open_samples
        from radp.training.loop import is_main_process

        torch.set_num_threads(self.training.threads)
        initial = load_model(model_path(self.start_from)) if self.start_from is not None else None
        model = _switched(initial.config if initial is not None else ModelConfig.preset(self.preset), self.switches)
        if initial is not None:
            try:
                initial = extended(initial, model)
            except ValueError as error:
                raise BadInput(f"{self.start_from}: {error}") from None
        config, scenes = BaseConfig(model=model, **vars(self.config)), scene_config(model)
        samples = Mixture([open_samples(folder, scenes, SHORTEST_FUTURE) for folder in self.data], self.shares or None)
        if len(samples) < config.loop.batch:
            raise BadInput(f"{self.data[0]} holds {len(samples)} samples, fewer than one batch of {config.loop.batch}")
        facts = {
            "data": " ".join(map(str, self.data)),
            "samples": len(samples),
            "start_from": str(self.start_from or ""),
            **({"shares": samples.shares.tolist()} if self.shares else {}),
        }
        held_out, drives = self.training.watched(scenes)
        execution = {"threads": self.training.threads}
        folder = RunFolder.create(self.out, "train base", config, config.loop.seed, execution, facts)
        path = train_base(config, folder, samples, held_out, drives, initial, self.training.stop_after)
        if is_main_process():
            print(path)
        return 0


@dataclass(frozen=True, kw_only=True)
class TrainAlign:
    """Align a planner with the driving rules, through LoRA adapters or its decoder; the defaults are the paper's.

    Adapters are written to OUT/adapter in PEFT's own format, the scales of the rules to OUT/scales.json. The paper's
    variants: --no-rules trains the adapters on the diffusion loss alone, --no-normalisation skips the scales.

    Example:
        radp train align --base diffusion-planner-mini --data runs/samples --out runs/radp
        radp train align --base runs/base/model --data runs/own-samples --focus runs/own-focus.json --hold base \\
            --way chain --rule-set avoid --gate --without comfort goal --out runs/avoid
    """

    base: str
    """Packaged model, model folder or published .pth to align."""
    data: tuple[Path, ...]
    """Samples made by `radp data samples`; several folders count as one, in this order."""
    out: Path
    """Run folder; the same command resumes it."""
    focus: tuple[Path, ...] = ()
    """List made by `radp train focus`: samples on which the base planner would touch somebody; or a list for each
    folder of samples."""
    config: AlignConfig = field(default_factory=lambda: AlignConfig(focus_share=0.5))
    training: Training = field(default_factory=Training)

    def __call__(self) -> int:
        if self.training.processes > 1:
            return self.training.shared(self)
        import torch

        from radp.model.paths import model_path
        from radp.model.rule_weights import conditioned
        from radp.planners.diffusion import scene_config
        from radp.planners.learned import load_planner_model
        from radp.rules import needs_road
        from radp.runs.folder import RunFolder
        from radp.scene.builder import FUTURE, SHORTEST_FUTURE
        from radp.training.align import check_way, train_align
        from radp.training.data import open_all
        from radp.training.focus import focus_rows
        from radp.training.loop import is_main_process
        from radp.training.rule_terms import rules_of_loss

        torch.set_num_threads(self.training.threads)
        check_way(self.config)
        model = load_planner_model(model_path(self.base))
        check_way(self.config, model.config.sampler_steps)
        config = self.config if self.focus else replace(self.config, focus_share=0.0)
        rules = rules_of_loss(config)
        if config.weighting.conditioned:
            model = conditioned(model, [rule.name for rule in rules])
        scenes = scene_config(model.config, rules=True, road=needs_road(rules))
        imitated = FUTURE if config.rules else SHORTEST_FUTURE  # rules on logs look at the whole of it
        future = imitated if config.avoid.hold == "logs" else 1
        samples = open_all(self.data, scenes, future, config.avoid.encounters)
        chosen = focus_rows(self.focus, samples)
        driven = focus_rows(self.focus, samples, driven=True)
        data = " ".join(map(str, self.data))
        facts = {"base": self.base, "data": data, "samples": len(samples), "focus": len(chosen)}
        held_out, drives = self.training.watched(scene_config(model.config))
        execution, stop = {"threads": self.training.threads}, self.training.stop_after
        folder = RunFolder.create(self.out, "train align", config, config.loop.seed, execution, facts)
        path = train_align(config, folder, model, samples, held_out, drives, stop, chosen, driven)
        if is_main_process():
            print(path)
        return 0


@dataclass(frozen=True, kw_only=True)
class TrainFocus(FocusSearch):
    """List the samples on which a planner would touch somebody soon and the logged way does not.

    With --own the samples are states of the planner's own drives, and what was executed is no excuse.

    Example:
        radp train focus --planner diffusion-planner-mini --data runs/samples --out runs/focus.json
        radp train focus --planner runs/base/model --data runs/own-samples --own --within 4 --margin 0.3 --corners \\
            --out runs/own-focus.json
        radp train focus --planner runs/base/model --slower runs/round-1/planner --data runs/own-samples \\
            runs/own-samples-1 --own --within 4 --margin 0.3 --out runs/own-focus.json
    """

    planner: str
    """Packaged model or planner folder."""
    data: tuple[Path, ...]
    """Samples of the training split, made by `radp data samples`; several folders count as one, in this order."""
    slower: str | None = None
    """Packaged model or planner folder: samples on which it falls behind the planner by `lag` are listed as well."""
    out: Path
    """JSON file, for `radp train align --focus`."""
    threads: int = 2
    """Torch threads."""

    def __call__(self) -> int:
        import torch

        from radp.planners.learned import load_learned
        from radp.scene.builder import FUTURE
        from radp.training.data import open_all
        from radp.training.encounters import Encounters
        from radp.training.focus import find_focus

        if self.encounters and not (self.own and self.contexts == "constant"):
            raise BadInput("--encounters needs --own and --contexts constant: nobody knows what would have happened")
        torch.set_num_threads(self.threads)
        model = load_learned(self.planner)
        source = open_all(self.data, replace(model.scenes, rules=True), 1 if self.own or self.driven else FUTURE)
        if self.encounters:
            source = Encounters(source, self.encounters)
        slower = load_learned(self.slower) if self.slower is not None else None
        found = find_focus(model, source, self, slower=slower)
        found.save(self.out)
        print(f"{self.out}: {len(found.rows)} of {found.looked_at} samples")
        return 0


@dataclass(frozen=True, kw_only=True)
class TrainHead:
    """Train the attribution head on a cache of teacher pressures; the defaults are the paper's.

    Example:
        radp train head --cache runs/cache-train --validation runs/cache-val --out runs/head
    """

    cache: Path
    """Made by `radp cache`."""
    out: Path
    """Run folder; the same command resumes it."""
    validation: Path | None = None
    """A cache of other samples, of the same planner."""
    config: HeadTraining = field(default_factory=HeadTraining)
    threads: int = 2
    """Torch threads."""

    def __call__(self) -> int:
        import torch

        from radp.attribution.cache import Cache
        from radp.runs.folder import RunFolder
        from radp.training.head import train_head

        torch.set_num_threads(self.threads)
        cache, held_out = Cache(self.cache), Cache(self.validation) if self.validation is not None else None
        if held_out is not None and not held_out.is_like(cache):
            other = "another planner, other rules or another calibration"
            raise BadInput(f"{self.validation} was made with {other} than {self.cache}")
        execution, facts = {"threads": self.threads}, {"cache": cache.made_of}
        folder = RunFolder.create(self.out, "train head", self.config, self.config.seed, execution, facts)
        print(train_head(self.config, folder, cache, held_out))
        return 0
