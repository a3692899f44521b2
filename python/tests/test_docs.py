"""Every block of code of docs/python.md runs, one after the other."""

import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_tour_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("pandas")
    if not PAGE.exists():
        pytest.skip("the page is not here")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "tour"}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) > 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, block in enumerate(blocks, 1):
            exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
    assert "did you mean `kernel`" in capsys.readouterr().out
