"""Every block of code of docs/python.md and of the pages in docs/notebooks runs, one after the other."""

import importlib.machinery
import importlib.util
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.md"))


def load(path):
    loader = importlib.machinery.SourceFileLoader(path.stem, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.stem, loader))
    loader.exec_module(module)
    return module


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


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_the_notebooks_run(page, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    printed = load(ROOT / "scripts" / "notebooks").run(page)
    assert any(printed)
    wanted = set(re.findall(r"\]\(../pictures/([\w-]+\.svg)\)", page.read_text()))
    assert wanted == {picture.name for picture in tmp_path.glob("*.svg")}
    missing = [name for name in wanted if not (ROOT / "docs" / "pictures" / name).exists()]
    assert not missing, "scripts/notebooks --write draws them"
