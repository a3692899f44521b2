"""Tables of anything with columns: the same numbers, borrowed where they can be, and refusals."""

import numpy as np
import pytest

import thiele
from thiele.table import _read_column


def written(data, path, **options):
    thiele.Table(data, **options).write(path)
    return path.read_text()


def test_memory_orders_agree(tmp_path):
    x = np.random.default_rng(0).standard_normal((7, 3))
    wide = np.zeros((7, 6))
    wide[:, ::2] = x
    expected = written(x, tmp_path / "t.csv")
    assert expected.startswith("x1,x2,x3\n")
    for other in (np.asfortranarray(x), wide[:, ::2], x[::-1][::-1], {f"x{i + 1}": list(x[:, i]) for i in range(3)}):
        assert written(other, tmp_path / "t.csv") == expected


def test_floats_are_not_copied():
    x = np.random.default_rng(0).standard_normal((50, 4))
    for column in (x[:, 1], np.asfortranarray(x)[:, 2], x[::-2, 3]):
        numbers, codes, texts = _read_column("x", column)
        assert np.shares_memory(numbers, column) and codes is None and texts is None


def test_pandas_floats_are_not_copied():
    pandas = pytest.importorskip("pandas")
    x = np.random.default_rng(0).standard_normal((50, 4))
    frame = pandas.DataFrame(x, copy=False)
    assert np.shares_memory(_read_column("x", frame.iloc[:, 1])[0], x)


def test_types(tmp_path):
    data = {
        "small": np.array([1, 2, 3], dtype=np.int8),
        "single": np.array([0.5, np.nan, 1.5], dtype=np.float32),
        "swapped": np.array([1.0, 2.0, 3.0], dtype=">f8"),
        "flag": [True, False, True],
        "mixed": [1, None, 2.5],
        "text": ["p", None, "q,r"],
        "word": np.array(["u", "v", "u"]),
        "day": np.array(["2024-01-01", "NaT", "2024-01-03"], dtype="datetime64[D]"),
    }
    lines = written(data, tmp_path / "t.csv").splitlines()
    assert lines == [
        "small,single,swapped,flag,mixed,text,word,day",
        "1,0.5,1,1,1,p,u,2024-01-01",
        "2,,2,0,,,v,",
        '3,1.5,3,1,2.5,"q,r",u,2024-01-03',
    ]


def test_pandas_types(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "whole": pandas.array([1, None, 3], dtype="Int64"),
            "flag": pandas.array([True, None, False], dtype="boolean"),
            "text": pandas.array(["a", None, "b"], dtype="string"),
            "kind": pandas.Categorical([7, 9, None]),
        }
    )
    table = thiele.Table(frame)
    assert table.columns == ["whole", "flag", "text", "kind"] and table.categories == ("kind",)
    assert written(frame, tmp_path / "t.csv").splitlines()[1:] == ["1,1,a,7", ",,,9", "3,0,b,"]


def test_arrow(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    texts = arrow.chunked_array([["x", "y", None], ["z", "x"]])
    table = thiele.Table(arrow.table({"kind": texts.dictionary_encode(), "text": texts, "n": [1, None, 3, 4, 5]}))
    assert table.categories == ("kind",)
    table.write(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[1:] == ["x,x,1", "y,y,", ",,3", "z,z,4", "x,x,5"]


def test_polars(tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1.0, None], "s": ["x", None]})
    assert written(frame, tmp_path / "t.csv") == "a,s\n1,x\n,\n"


def test_structured_arrays_and_names(tmp_path):
    array = np.array([(1.0, "u"), (2.0, "v")], dtype=[("a", float), ("b", "U1")])
    assert written(array, tmp_path / "t.csv") == "a,b\n1,u\n2,v\n"
    assert thiele.Table(np.ones((2, 2)), names=["p", "q"]).columns == ["p", "q"]


def test_files(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;-\n2;3\n")
    table = thiele.Table.open(path, delimiter=";", missing=["-"])
    assert len(table) == 2 and table.columns == ["a", "b"]
    with pytest.raises(thiele.FileError, match="absent"):
        thiele.Table.open(tmp_path / "absent.csv")
    assert isinstance(thiele.FileError("x"), OSError)


@pytest.mark.parametrize(
    "data, error, part",
    [
        ({"a": [1.0], "b": [1.0, 2.0]}, thiele.DataError, "column 'b' has 2 rows"),
        ({}, thiele.DataError, "no columns"),
        (np.ones((2, 2, 2)), thiele.ArgumentError, "two dimensions"),
        ({"a": np.array([1j])}, thiele.DataError, "complex"),
        ({"a": ["x\0y"]}, thiele.DataError, "zero character"),
        (np.ones((0, 2)), thiele.DataError, "no rows"),
    ],
)
def test_refusals(data, error, part):
    with pytest.raises(error, match=part):
        thiele.Table(data)
    with pytest.raises(thiele.ArgumentError, match="names"):
        thiele.Table(np.ones((2, 2)), names=["only"])
