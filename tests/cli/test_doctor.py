import json

from radp.cli import doctor as doctor_module
from radp.cli.doctor import requirements
from radp.cli.main import main
from radp.version import __version__


def test_requirements_are_sorted_into_core_and_extras():
    core, extras = requirements(
        ["numpy>=1.26", "tyro>=0.8", 'libsumo==1.28.*; extra == "sumo"', "peft>=0.12 ; extra == 'train'", "a.b-c[x]>1"]
    )
    assert core == ["numpy", "tyro", "a.b-c"]
    assert extras == {"sumo": ["libsumo"], "train": ["peft"]}


def test_json_names_what_is_there(capsys, monkeypatch, tmp_path):
    (tmp_path / "2021.05.12").mkdir()
    (tmp_path / "2021.05.12" / "a.db").touch()
    monkeypatch.setenv("NUPLAN_DATA_ROOT", str(tmp_path))
    monkeypatch.setenv("NUPLAN_MAPS_ROOT", str(tmp_path / "nowhere"))
    assert main(["doctor", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert findings["radp"]["version"] == __version__
    assert findings["torch"]["version"] and findings["torch"]["threads"] >= 1
    assert findings["packages"]["numba"]["version"]
    assert set(findings["extras"]) >= {"sumo", "train", "nuplan", "dev"}
    assert findings["data"]["NUPLAN_DATA_ROOT"]["files"] == 1
    assert findings["data"]["NUPLAN_MAPS_ROOT"] == {
        "what": "nuPlan maps, map.gpkg", "set": True, "path": str(tmp_path / "nowhere"), "found": False, "files": 0
    }  # fmt: skip
    assert isinstance(findings["splits"], list) and isinstance(findings["models"], list)


def test_a_missing_extra_comes_with_the_way_to_get_it(capsys, monkeypatch):
    versions = {"libsumo": None}
    real = doctor_module.installed_version
    monkeypatch.setattr(doctor_module, "installed_version", lambda name: versions.get(name, real(name) or "1"))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert 'extra     sumo: lacks libsumo: pip install "radp[sumo]"' in out
    assert "extra     train: present" in out


def test_a_missing_core_package_is_a_failure(capsys, monkeypatch):
    monkeypatch.setattr(doctor_module, "installed_version", lambda name: None if name == "numba" else "1")
    assert main(["doctor"]) == 1
    assert "numba MISSING" in capsys.readouterr().out
