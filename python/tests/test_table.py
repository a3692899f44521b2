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
    again = tmp_path / "again.csv"
    again.write_text("a;b\n5;6\n")
    assert len(thiele.Table.open([path, str(again)], delimiter=";", missing=["-"])) == 3
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


# --- Arrow -----------------------------------------------------------------------------------------------------------


def every_kind(polars):
    """A row of nulls between two others."""
    from datetime import date, datetime, time

    return polars.DataFrame(
        {
            "small": polars.Series([1, None, -3], dtype=polars.Int8),
            "large": polars.Series([2**40, None, 0], dtype=polars.UInt64),
            "single": polars.Series([0.5, None, 1.5], dtype=polars.Float32),
            "flag": [True, None, False],
            "text": ["a longer text than twelve", None, "b"],
            "kind": polars.Series(["7", None, "9"], dtype=polars.Categorical),
            "level": polars.Series(["u", None, "v"], dtype=polars.Enum(["v", "u"])),
            "day": [date(2024, 2, 29), None, date(1969, 12, 31)],
            "when": [datetime(2024, 2, 29, 6, 30), None, datetime(2024, 3, 1)],
            "clock": [time(6, 30), None, time(0, 0)],
            "money": polars.Series(["1.25", None, "-3.5"]).cast(polars.Decimal(9, 2)),
            "nothing": polars.Series([None] * 3, dtype=polars.Null),
        }
    )


EVERY_KIND = [
    "small,large,single,flag,text,kind,level,day,when,clock,money,nothing",
    "1,1099511627776,0.5,1,a longer text than twelve,7,u,2024-02-29,2024-02-29T06:30:00,06:30:00,1.25,",
    ",,,,,,,,,,,",
    "-3,0,1.5,0,b,9,v,1969-12-31,2024-03-01,00:00:00,-3.5,",
]


def test_every_kind_by_arrow(tmp_path):
    polars = pytest.importorskip("polars")
    frame = every_kind(polars)
    assert written(frame, tmp_path / "t.csv").splitlines() == EVERY_KIND
    assert thiele.Table(frame).categories == ("kind", "level")
    pieces = polars.concat([frame[:1], frame[1:]], rechunk=False)
    assert pieces.n_chunks() == 2 and written(pieces, tmp_path / "t.csv").splitlines() == EVERY_KIND


def test_pyarrow_by_arrow(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    table = every_kind(polars).to_arrow()
    assert written(table, tmp_path / "t.csv").splitlines() == EVERY_KIND
    assert written(table.slice(2), tmp_path / "t.csv").splitlines() == [EVERY_KIND[0], EVERY_KIND[3]]
    batch = arrow.record_batch({"a": arrow.array([1.0, None]), "b": arrow.array(["x", ""])})
    assert written(batch, tmp_path / "t.csv") == "a,b\n1,x\n,\n"
    reader = arrow.RecordBatchReader.from_batches(batch.schema, [batch, batch])
    assert len(thiele.Table(reader)) == 4


def test_duckdb_by_arrow(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(
        "select i as n, i / 2 as half, 1.5 as d, 'site ' || (i % 2) as site, date '2024-01-01' + i::int as day, "
        "sum(i) over () as total from range(3) t(i)"
    )
    assert written(relation, tmp_path / "t.csv").splitlines() == [
        "n,half,d,site,day,total",
        "0,0,1.5,site 0,2024-01-01,3",
        "1,0.5,1.5,site 1,2024-01-02,3",
        "2,1,1.5,site 0,2024-01-03,3",
    ]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_arrow_floats_are_not_copied():
    arrow = pytest.importorskip("pyarrow")
    numbers = np.ones(4_000_000)
    table = arrow.table({"a": numbers, "b": numbers})
    before = resident()
    made = thiele.Table(table)
    assert resident() - before < 4_000_000 and len(made) == len(numbers)
    numbers[0] = 0.0  # still the same memory
    assert np.all(np.frombuffer(table["a"].chunk(0).buffers()[1])[:2] == [0.0, 1.0])


def test_arrow_outlives_what_it_came_from(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    made = thiele.Table(arrow.table({"a": arrow.array([1.5, 2.5]), "b": arrow.array(["x", "y"])}))
    made.write(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a,b\n1.5,x\n2.5,y\n"


def test_arrow_refusals():
    arrow = pytest.importorskip("pyarrow")
    for column, part in (
        (arrow.array([[1.0]]), "column 'x' holds lists.*make columns of their elements"),
        (arrow.array([{"a": 1}]), "structs"),
        (arrow.array([b"x"]), "bytes"),
        (arrow.array([1], arrow.duration("s")), "durations.*cast it to a number"),
    ):
        with pytest.raises(thiele.UnsupportedError, match=part):
            thiele.Table(arrow.table({"x": column}))
    with pytest.raises(thiele.DataError, match="no rows"):
        thiele.Table(arrow.table({"x": arrow.array([], arrow.float64())}))

    def failing():
        yield arrow.record_batch({"x": [1.0]})
        raise RuntimeError("the wire was cut")

    schema = arrow.schema({"x": arrow.float64()})
    with pytest.raises(thiele.FileError, match="the wire was cut"):
        thiele.Table(arrow.RecordBatchReader.from_batches(schema, failing()))


def test_the_same_model_from_pandas_and_arrow():
    """Dates and categories among the columns."""
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    random = np.random.default_rng(1)
    days = np.datetime64("2024-01-01") + np.arange(80)
    kind = random.integers(0, 3, 80)
    y = np.sin(np.arange(80) / 9.0) + 0.5 * kind + 0.1 * random.standard_normal(80)
    pandas_frame = pandas.DataFrame({"day": days, "kind": pandas.Categorical(kind), "y": y}, index=range(5, 85))
    polars_frame = polars.DataFrame({"day": days, "kind": kind, "y": y}).with_columns(
        polars.col("kind").cast(polars.String).cast(polars.Categorical)
    )
    made = []
    for frame in (pandas_frame, polars_frame):
        with pytest.warns(thiele.ThieleWarning, match="'day' holds dates and is used as a number"):
            model = thiele.fit(frame, "y", method="exact", kernel="se(ard)")
        assert model.inputs == ["day", "kind"]
        made.append(model.predict(frame[:9]).mean)
    assert np.array_equal(made[0], made[1])
