from radp.runs.ledger import Ledger


def test_failures_are_kept_until_settled(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert ledger.failures() == {}
    ledger.record("a", "no lane")
    ledger.record("b", "planner raised", detail="Traceback\n...")
    ledger.record("a", "still no lane")
    assert ledger.failures() == {"a": "still no lane", "b": "planner raised"}
    ledger.settle("a")
    ledger.settle("never failed")
    assert Ledger(tmp_path / "ledger.jsonl").failures() == {"b": "planner raised"}
    assert len(ledger.rows()) == 4


def test_a_line_cut_short_costs_only_itself(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.record("a", "one")
    with open(ledger.path, "ab") as file:
        file.write(b'{"piece": "b", "rea')
    assert ledger.failures() == {"a": "one"}
    ledger.record("c", "three")
    assert ledger.failures() == {"a": "one", "c": "three"}


def test_foreign_lines_are_passed_over(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.path.write_bytes(b'\xff\xfe\n[1]\n{"piece": "x"}\n{"piece": "a", "reason": "r"}\n')
    assert ledger.failures() == {"a": "r"}


def test_rows_of_others_are_passed_over(tmp_path):
    path = tmp_path / "ledger.jsonl"
    path.write_text('{"piece": ["a"], "reason": "x"}\n{"piece": "b", "reason": 3}\n{"piece": {}, "reason": null}\n')
    assert Ledger(path).failures() == {"b": "3"}
