"""Options come from the library's table: names, defaults, types, texts of values."""

import typing

import numpy as np
import pytest

import thiele
from thiele._option_types import OptionTypes
from thiele.options import option_text


def test_types_are_those_of_the_table():
    assert list(OptionTypes.__annotations__) == [name for name in thiele.options() if name != "target"]


def test_defaults():
    options = thiele.options()
    assert options["method"].default == "auto" and "exact" in options["method"].choices
    assert options["raw"].default is False
    assert options["restarts"].default == 0 and options["holdout"].default == 0.0
    assert options["inputs"].default is None
    assert all(option.meaning and "`=" not in option.more for option in options.values())


@pytest.mark.parametrize(
    "value, text",
    [
        (True, "1"),
        (np.bool_(False), "0"),
        (np.int64(7), "7"),
        (0.1, "0.1"),
        (np.float32(0.5), "0.5"),
        ("se", "se"),
        (["a", "b,c", 'd"e'], 'a,"b,c","d""e"'),
        (np.array(["a", "b"]), "a,b"),
        ({"noise": 0.5, "lengthscale[a]": 2}, "noise=0.5, lengthscale[a]=2"),
    ],
)
def test_texts(value, text):
    assert option_text(value) == text


def test_every_default_is_accepted(rows):
    x, y = rows
    given = {name: o.default for name, o in thiele.options().items() if name not in ("target", "iterations", "kernel")}
    model = thiele.fit({"a": x[:, 0], "y": y}, "y", iterations=0, kernel="se", **given)
    assert model.inputs == ["a"]


def test_mistakes_are_explained(frame):
    with pytest.raises(thiele.ArgumentError, match="did you mean `kernel`"):
        thiele.fit(frame, "y", kernal="se")
    with pytest.raises(thiele.ArgumentError, match="`iterations`: 'many' is not a whole number"):
        thiele.fit(frame, "y", iterations="many")
    with pytest.raises(thiele.ColumnError, match="no column 'z'"):
        thiele.fit(frame, "z")


def test_type_hints_resolve():
    typing.get_type_hints(OptionTypes)
