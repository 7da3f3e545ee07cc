"""Splits of sumo14 that are not packaged: made on demand by a fixed recipe, and checked by the hash of their content.

The hash is over tokens, kinds, arrays and maps, not over files, so that another version of a compression library does
not change it.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from radp.evaluation.closed_loop import run_simulation, summarise_run
from radp.evaluation.hardest import hardest_tokens, write_selection
from radp.evaluation.settings import Simulation
from radp.runs.errors import BadInput
from radp.scenario import Scenario
from radp.scenario.splits import made_split
from radp.scenario.store import ScenarioStore
from radp.sources.settings import SumoSplit
from radp.sources.sumo.make import generate
from radp.storage.records import content_hash


@dataclass(frozen=True)
class Recipe:
    """`per_kind` scenarios of each kind; with a `pool`, those of it that PDM-Closed drives worst, non-reactive."""

    split: str  # seeds the networks: splits of different names never share one
    seed: int
    per_kind: int
    networks: int
    pool: int | None = None  # scenarios of each kind to choose from
    digest: str | None = None  # of the finished split; None before it was first made


RECIPES = {
    "sumo14-dev": Recipe("dev", 0, 40, 40, digest="f45c0e376d44f9c737b80c1ed929d1fa0f947fc12c1cead795bd646bb8b9f516"),
    "sumo14-hard-xl": Recipe(
        "hard-xl", 1, 80, 192, pool=400, digest="a2f98fc210c4591953d2f23927d46f412272708357c906b9c2e149cfbdb98c8a"
    ),
}


def make_split(name: str, workers: int = 1) -> tuple[Path, str]:
    """Make a split where `open_split` finds it -> its folder and the hash of its content.

    The same call takes up a hard split whose drives were interrupted. BadInput if the hash is not the expected one.
    """
    recipe = _recipe(name)
    out = made_split(name)
    if not (out / "manifest.json").exists():
        work = out.with_name(f"{name}.making")
        shutil.rmtree(work / "split", ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        _make(recipe, work, workers)
        (work / "split").rename(out)
        shutil.rmtree(work)
    found = digest(out)
    if recipe.digest is not None and found != recipe.digest:
        raise BadInput(
            f"{out} is not the split of the recipe: its content has the hash {found}, expected {recipe.digest}; "
            "scores on it cannot be compared with published ones"
        )
    return out, found


def _recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise BadInput(f"no recipe for {name!r}; there are {', '.join(RECIPES)}")
    return RECIPES[name]


def _make(recipe: Recipe, work: Path, workers: int) -> None:
    wanted = SumoSplit(split=recipe.split, seed=recipe.seed, networks=recipe.networks)
    if recipe.pool is None:
        generate(replace(wanted, per_kind=recipe.per_kind), work / "split", workers)
        return
    pool = work / "pool"
    if not (pool / "card.json").exists():
        shutil.rmtree(pool, ignore_errors=True)
        generate(replace(wanted, per_kind=recipe.pool), pool, workers)
    job = Simulation(planner="pdm_closed", scenarios=str(pool), agents="nonreactive")
    run = run_simulation(job, work / "drives", workers=workers)
    summarise_run(run)
    write_selection(run.split, hardest_tokens(run, recipe.per_kind), work / "split")


def digest(path: Path) -> str:
    """sha256 of the content of a store, in its order."""
    whole = hashlib.sha256()
    for scenario in ScenarioStore.open(path):
        whole.update(_scenario_digest(scenario))
    return whole.hexdigest()


def _scenario_digest(scenario: Scenario) -> bytes:
    one = hashlib.sha256()
    words = (scenario.token, scenario.kind, *scenario.route, *scenario.tracks.ids, content_hash(scenario.map))
    one.update("\n".join(words).encode())
    tracks, lights = scenario.tracks, scenario.lights
    goal = np.zeros(0) if scenario.goal is None else scenario.goal
    arrays = (scenario.time_us, scenario.ego, goal, tracks.type, tracks.size, tracks.state, tracks.valid)
    for array in (*arrays, lights.lane, lights.state):
        one.update(np.ascontiguousarray(array).tobytes())
    return one.digest()
