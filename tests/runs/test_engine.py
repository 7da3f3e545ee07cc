import json
from pathlib import Path

import pytest

from radp.runs.engine import Engine, current_engine, use_engine
from radp.runs.errors import BadInput
from radp.runs.files import private_folder
from radp.runs.journal import maps_of
from radp.runs.parallel import parallel_map, runs_here
from radp.runs.piece import Answer, Raised
from radp.runs.slurm_engine import LedgerTail, dealt
from tests.runs.made_pieces import square


def test_the_engine_is_the_one_that_is_named_else_of_the_environment_else_local(monkeypatch):
    monkeypatch.delenv("RADP_ENGINE", raising=False)
    assert current_engine().is_local and runs_here(1) and not runs_here(2)
    monkeypatch.setenv("RADP_ENGINE", "ray")
    assert current_engine().name == "ray" and not runs_here(1)
    with use_engine(Engine("slurm-local", slurm=("time=5",))):
        assert current_engine().slurm == ("time=5",)
    with use_engine(Engine("local")):
        assert current_engine().is_local
    monkeypatch.setenv("RADP_ENGINE", "rya")
    with pytest.raises(BadInput, match="RADP_ENGINE is 'rya', expected one of local, ray, slurm"):
        current_engine()


@pytest.mark.parametrize(
    "engine", [Engine(ray_address="auto"), Engine("ray", slurm=("time=5",)), Engine("ray", dry_run=True)]
)
def test_options_of_another_engine_are_refused(monkeypatch, engine):
    monkeypatch.delenv("RADP_ENGINE", raising=False)
    with pytest.raises(BadInput, match="is for --engine"), use_engine(engine):
        pass


def test_shards_are_even_and_depend_on_nothing_but_the_names():
    names = {i: f"token-{i}" for i in range(23)}
    shares = dealt(names, 5)
    assert sorted(i for share in shares for i in share) == list(range(23))
    assert sorted(map(len, shares)) == [4, 4, 5, 5, 5]
    turned = dealt(dict(reversed(names.items())), 5)
    assert turned == shares
    assert [len(share) for share in dealt({7: "a"}, 5)] == [1]


def test_a_ledger_tells_which_pieces_took_their_job_with_them(tmp_path):
    file = tmp_path / "shard-00000.jsonl"
    rows = [{"begun": 1}, {"ended": 1}, {"begun": 2}, {"begun": 2}, {"pardoned": 2}, {"begun": 3}]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    tail = LedgerTail(file)
    assert list(tail.new_rows()) == []
    file.write_text(text[:-4])
    assert list(tail.new_rows()) == rows[:-1], "the last line is not whole yet"
    file.write_text(text)
    assert list(tail.new_rows()) == rows[-1:] and tail.deaths == {2: 1, 3: 1}


def test_what_is_unpickled_lies_in_a_folder_that_is_ours_alone(tmp_path):
    assert private_folder(tmp_path / "own").stat().st_mode & 0o077 == 0
    (tmp_path / "own").chmod(0o770)
    with pytest.raises(BadInput, match="open to other users"):
        private_folder(tmp_path / "own")


def odd(x: int) -> int:
    if x % 2 == 0:
        raise ValueError("even")
    return x


def test_the_journal_tells_what_was_done_where_and_how_long_it_took(tmp_path):
    parallel_map(odd, [1, 2, 3], folder=tmp_path, label="numbers")
    (found,) = maps_of(tmp_path)
    assert (found["label"], found["pieces"], found["done"], found["failed"], found["missing"]) == (
        "numbers",
        3,
        2,
        1,
        0,
    )
    assert found["state"] == "ended" and found["engine"] == "local"
    (node,) = found["nodes"].values()
    assert node["pieces"] == 3 and {row["piece"] for row in found["slowest"]} == {"1", "3"}

    def stop(index: int, value: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel_map(square, [1, 2, 3], folder=tmp_path, on_result=stop)
    assert [(m["state"], m["done"], m["missing"]) for m in maps_of(tmp_path)] == [("ended", 2, 0), ("stopped", 1, 2)]


def test_an_answer_that_is_sent_keeps_what_was_raised():
    assert Answer(Raised("no")).value.end is None


def test_the_script_for_sbatch_has_what_was_asked_for():
    pytest.importorskip("submitit")
    from radp.runs.slurm_engine import script

    engine = Engine("slurm", slurm=("partition=main", "time=90", "mem=8G", "gres-flags=none"))
    text = script(engine, Path("runs/x"), 10)
    for line in ("--partition=main", "--time=90", "--mem=8G", "--gres-flags=none", "--requeue", "--array=0-9%10"):
        assert f"#SBATCH {line}\n" in text
    assert "submitit.core._submit" in text and f"{Path('runs/x').resolve()}" in text
    with pytest.raises(BadInput, match="time is '1:30', expected a whole number"):
        script(Engine("slurm", slurm=("time=1:30",)), Path("runs/x"), 1)
