"""The programs of docs/side-by-side.md run where their library is installed, and predict better than guessing."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench" / "side_by_side.py"
GUESSING = {"regression": 2.9, "classification": 0.69}  # NLPD of a normal for all rows, of a coin


def load():
    spec = importlib.util.spec_from_file_location("side_by_side", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


side_by_side = load() if BENCH.exists() else None
pytestmark = pytest.mark.skipif(side_by_side is None, reason="bench/side_by_side.py is not here")


@pytest.mark.parametrize("task", side_by_side.TASKS if side_by_side else ())
@pytest.mark.parametrize("name", side_by_side.PEERS if side_by_side else ())
def test_a_program_runs(task, name, tmp_path):
    side_by_side.make_data(task, tmp_path, train=150, test=100)
    made = side_by_side.run(task, name, tmp_path)
    if made is None:
        pytest.skip(f"{side_by_side.PEERS[name][0]} is not installed: bench/setup-peers")
    assert made["nlpd"] < GUESSING[task]


@pytest.mark.parametrize("task", side_by_side.TASKS if side_by_side else ())
def test_the_page_shows_the_programs(task):
    text = side_by_side.PAGE.read_text()
    for name in side_by_side.PEERS:
        assert (side_by_side.PROGRAMS / task / f"{name}.py").read_text() in text
