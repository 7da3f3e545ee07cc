"""Prognosis: folds that share no log, trees that learn, and a pressure that knows more or less than TTC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from radp.evaluation.alignment import risks
from radp.evaluation.boosted import boosted_score, folds_of
from radp.evaluation.drives import Drives
from radp.evaluation.endpoints import ENDPOINTS
from radp.evaluation.known import MEASURES
from radp.evaluation.prognosis import CEILING, PLAIN, Prognosis, prognosis
from radp.report.prognosis_tables import forecast_table, increment_table, lead_table, prognosis_json, verdict
from radp.runs.errors import BadInput
from tests.evaluation.test_alignment import RULES, made_drives


@pytest.fixture(autouse=True, scope="module")
def few_trees() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("radp.evaluation.boosted.TREES", 12)
        yield


@pytest.fixture(scope="module")
def ttc_knows(few_trees: None) -> Prognosis:
    return prognosis(with_measures("TTC"), resamples=300)


def with_measures(knows: str = "", count: int = 20) -> Drives:
    """Measures are noise, but for the one that knows the lane's risk; the pressure is noise about the rest."""
    draw = np.random.default_rng(3)
    drives = made_drives(count)
    shape = drives.severity["lane"].shape
    measures = {name: draw.normal(size=shape) for name in MEASURES}
    lane = np.nan_to_num(risks(drives)["lane"])
    if knows in MEASURES:
        measures[knows] = lane + 0.1 * draw.normal(size=shape)
    pressure = draw.normal(size=(*shape, len(RULES)))
    if knows == "pressure":
        pressure[..., RULES.index("lane")] = lane + 0.1 * draw.normal(size=shape)
    severity = {name: draw.normal(size=shape) if name == "lane" else v for name, v in drives.severity.items()}
    known = replace(drives, scores={"teacher": pressure}, measures=measures)
    return replace(known, severity={**severity, "lane": drives.severity["lane"]})


def test_folds_keep_logs_together():
    logs = [f"{i // 3}:{i}".partition(":")[0] for i in range(30)]
    fold = folds_of(logs)
    assert set(fold) == set(range(5)) and all(len(set(fold[i : i + 3])) == 1 for i in range(0, 30, 3))
    assert list(folds_of(["a", "b"])) in ([0, 1], [1, 0])


def test_trees_learn_what_is_there_and_nothing_else():
    draw = np.random.default_rng(0)
    feature, noise = draw.normal(size=(2, 20, 60))
    risk = np.where(draw.random((20, 60)) < 0.1, np.nan, np.abs(feature))
    logs = [str(i) for i in range(20)]
    for features, low, high in (([feature, noise], 0.7, 1.0), ([noise], -0.2, 0.2)):
        score = boosted_score(features, risk, logs)
        known = ~np.isnan(risk)
        assert not np.isnan(score[known]).any() and np.isnan(score[~known]).all()
        assert low <= np.corrcoef(score[known], risk[known])[0, 1] <= high
    assert np.isnan(boosted_score([feature[:1]], risk[:1], ["a"])).all()  # nobody else to learn from


def test_where_ttc_knows_more_it_is_said(ttc_knows: Prognosis):
    found = ttc_knows
    lane = found.forecast("lane", "TTC")
    assert lane.rho.low > 0.5 and lane.lead["rho"].high < 0 and lane.p < 0.05
    better, worse = verdict(found, "TTC").split(". Pressure better: ")
    assert "Lane-boundary risk, mean" in better and "Lane" not in worse
    gain = next(one for one in found.increments if one.endpoint.name == "lane")
    assert abs(gain.added["rho"].value) < 0.1  # noise in place of noise


def test_where_pressure_knows_more_it_adds():
    found = prognosis(with_measures("pressure"), resamples=300)
    assert found.forecast("lane", "TTC").lead["rho"].low > 0
    gain = next(one for one in found.increments if one.endpoint.name == "lane")
    assert gain.added["rho"].low > 0 and gain.added["rho"].value > 0.1
    assert found.forecast("lane", CEILING).rho.value < found.forecast("lane", "teacher").rho.value  # has no pressure


def test_tables_have_every_predictor_and_endpoint(ttc_knows: Prognosis):
    found = ttc_knows
    names = {"teacher", *MEASURES, "persistence", "clock", CEILING, PLAIN}  # no cost in these drives
    assert set(found.predictors) == names
    forecasts, leads, gains = forecast_table(found, "here"), lead_table(found, "here"), increment_table(found, "here")
    assert len(forecasts.rows) == len(names) and len(gains.rows) == len(ENDPOINTS) + 3
    assert len(leads.rows) == len(names) * (len(ENDPOINTS) + 3)
    for table in (forecasts, leads, gains):
        assert all(len(row) == len(table.header) for row in table.rows)
    assert len(prognosis_json(found)["forecasts"]) == len(leads.rows)


def test_pressures_and_measures_are_needed():
    with pytest.raises(BadInput, match="no pressures of 'head'"):
        prognosis(with_measures(count=4), "head")
    with pytest.raises(BadInput):
        prognosis(replace(with_measures(count=4), measures={}))
