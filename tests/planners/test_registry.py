"""Planners are found by name, by module and by file."""

import pytest

from radp.planners import Planner, UnknownPlanner, list_planners, load_planner
from radp.planners.registry import BrokenPlanner

OWN = """
class Mine:
    name = "mine"
    def __init__(self, speed=1.0):
        self.speed = speed
    def plan(self, observation):
        raise NotImplementedError
"""


@pytest.mark.parametrize("name", list_planners())
def test_every_listed_planner_loads_and_knows_its_name(name):
    planner = load_planner(name)
    assert isinstance(planner, Planner)
    assert planner.name == name


def test_unknown_name_lists_what_exists():
    with pytest.raises(UnknownPlanner) as error:
        load_planner("pdm")
    assert all(name in str(error.value) for name in list_planners())


def test_own_planner_from_file_takes_options(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    planner = load_planner(f"{tmp_path}/mine.py:Mine", speed=3.0)
    assert planner.name == "mine"
    assert planner.speed == 3.0


def test_two_files_of_one_name_do_not_mix(tmp_path):
    for folder, name in (("a", "first"), ("b", "second")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(OWN.replace('"mine"', f'"{name}"'))
    assert load_planner(f"{tmp_path}/a/mine.py:Mine").name == "first"
    assert load_planner(f"{tmp_path}/b/mine.py:Mine").name == "second"


def test_own_planner_from_module(tmp_path, monkeypatch):
    (tmp_path / "house_of_mine.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    assert load_planner("house_of_mine:Mine").name == "mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.py:Mine", "no such file"),
        ("no_such_module:Mine", "no_such_module"),
        ("radp.scenario:Mine", "Mine"),
        ("radp.scenario:Vehicle", "method 'plan"),
    ],
)
def test_what_is_no_planner_gets_one_sentence(name, message):
    with pytest.raises(UnknownPlanner, match=message) as error:
        load_planner(name)
    assert "\n" not in str(error.value)


def test_error_inside_a_user_file_is_not_hidden(tmp_path):
    (tmp_path / "broken.py").write_text("import a_module_that_is_missing")
    line = r"a_module_that_is_missing' \(broken.py, line 1, in <module>: import a_module_that_is_missing\)"
    with pytest.raises(BrokenPlanner, match=line):
        load_planner(f"{tmp_path}/broken.py:Mine")
