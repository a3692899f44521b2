"""Tables: columns of numbers and texts for the library, borrowed from the caller's arrays where they can be."""

from __future__ import annotations

import ctypes
import math
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import NDArray

from . import _library as c
from ._context import Context
from ._library import lib
from .errors import ArgumentError, DataError

#: What can stand for a table: a Table, a file name, a mapping of columns, a data frame, an array.
TableLike = Any

_HEADERS = {None: 0, True: 1, False: 2}


class Table:
    """
    Named columns and numbered rows.

    ``data`` is a pandas data frame, anything that the Arrow interfaces can hand over (``__arrow_c_stream__``: a polars
    or pyarrow table, a relation of DuckDB), a mapping from names to columns, or a NumPy array (two-dimensional or
    structured). Columns of 64-bit floats are used where they lie, at any stride, of Arrow where they are in one piece
    without nulls; other numbers become floats; texts and categories become indices into the list of the different ones.
    NaN, None, NaT and nulls are missing values. What is borrowed must not be written to while the table is used.
    """

    def __init__(self, data: TableLike, names: Optional[Sequence[str]] = None) -> None:
        self._keep: list[Any] = []
        #: Columns of categories, also where they look like numbers.
        self.categories: tuple[str, ...] = ()
        if names is None and is_arrow(data):
            self._own(_read_arrow(data))
            return
        columns = _columns(data, names)
        if not columns:
            raise DataError("the table has no columns")
        array = (c.Column * len(columns))()
        rows = -1
        for place, (name, values) in enumerate(columns):
            length = self._fill(array[place], name, values)
            if rows not in (-1, length):
                raise DataError(f"column '{name}' has {length} rows and those before it {rows}")
            rows = length
        handle = ctypes.c_void_p()
        with Context() as context:
            context.check(
                lib.thiele_table_from_columns(ctypes.byref(handle), context.handle, rows, len(columns), array)
            )
        self._own(handle)

    @classmethod
    def open(
        cls,
        path: Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]]],
        *,
        missing: Union[str, Sequence[str], None] = None,
        header: Optional[bool] = None,
        delimiter: Optional[str] = None,
        dataset: Optional[str] = None,
    ) -> Table:
        """
        A CSV (plain or gzipped), NPY or HDF5 file, or several with the same columns, whose rows follow each other.
        missing: further texts that mean "no value".
        """
        paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        if missing is not None and not isinstance(missing, str):
            missing = ",".join(missing)
        options = c.TableOptions(
            size=ctypes.sizeof(c.TableOptions),
            header=_HEADERS[header],
            delimiter=(delimiter or "\0").encode(),
            missing=missing.encode() if missing is not None else None,
            dataset=dataset.encode() if dataset is not None else None,
        )
        names = (ctypes.c_char_p * len(paths))(*(os.fsencode(each) for each in paths))
        handle = ctypes.c_void_p()
        with Context() as context:
            context.check(
                lib.thiele_table_open_files(
                    ctypes.byref(handle), context.handle, names, len(paths), ctypes.byref(options)
                )
            )
        return cls._of(handle)

    @classmethod
    def generate(cls, rows: int, seed: int = 0) -> Table:
        """The built-in data set for demonstrations: x1, x2, site, row and strength."""
        handle = ctypes.c_void_p()
        with Context() as context:
            context.check(lib.thiele_table_generate(ctypes.byref(handle), context.handle, rows, seed))
        return cls._of(handle)

    @classmethod
    def of(cls, data: TableLike) -> Table:
        """A table as it is; a file name opened; anything else by its columns."""
        if isinstance(data, Table):
            return data
        if isinstance(data, (str, os.PathLike)):
            return cls.open(data)
        return cls(data)

    @classmethod
    def _of(cls, handle: ctypes.c_void_p) -> Table:
        table = cls.__new__(cls)
        table._keep = []
        table.categories = ()
        table._own(handle)
        return table

    def _own(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        self.categories += tuple(
            name for i, name in enumerate(self.columns) if lib.thiele_table_column_is_category(handle, i)
        )
        weakref.finalize(self, lib.thiele_table_destroy, handle)

    def __len__(self) -> int:
        return lib.thiele_table_rows(self._handle)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        count = lib.thiele_table_columns(self._handle)
        return [lib.thiele_table_column_name(self._handle, i).decode() for i in range(count)]

    def cells(self, name: str, rows: Optional[Sequence[int]] = None) -> list[str]:
        """The texts of a column as they stood in the file, of all rows or of some; "" where one is missing."""
        column, text = ctypes.c_int(), ctypes.create_string_buffer(512)
        with Context() as context:
            encoded = _text(name, "name of a column")
            context.check(lib.thiele_table_find_column(self._handle, context.handle, encoded, ctypes.byref(column)))
            found = []
            for row in range(len(self)) if rows is None else rows:
                context.check(lib.thiele_table_cell(self._handle, context.handle, row, column.value, text, len(text)))
                found.append(text.value.decode(errors="surrogateescape"))
        return found

    def write(self, path: Union[str, os.PathLike[str]]) -> None:
        """As CSV with a header."""
        with Context() as context:
            context.check(lib.thiele_table_write(self._handle, context.handle, os.fsencode(path)))

    def __repr__(self) -> str:
        return f"<thiele.Table: {len(self)} rows of {', '.join(self.columns)}>"

    def _fill(self, column: c.Column, name: str, values: Any) -> int:
        """Describes one column; what it refers to is kept. Returns its length."""
        column.name = _text(name, "name of a column")
        numbers, codes, texts = _read_column(name, values)
        if codes is None or texts is None:
            self._keep.append(numbers)
            column.values = numbers.ctypes.data
            column.stride = numbers.strides[0]
            return len(numbers)
        if getattr(getattr(values, "dtype", None), "name", "") == "category" or _is_arrow_dictionary(values):
            self.categories += (name,)
        pointers = (ctypes.c_char_p * max(1, len(texts)))(*(_text(text, f"column '{name}'") for text in texts))
        self._keep += [codes, pointers]
        column.codes = codes.ctypes.data
        column.texts = pointers
        column.text_count = len(texts)
        return len(codes)


def _text(text: str, where: str) -> bytes:
    encoded = text.encode(errors="surrogateescape")
    if b"\0" in encoded:
        raise DataError(f"{where}: {text!r} holds a zero character, which no text may")
    return encoded


# --- Arrow -----------------------------------------------------------------------------------------------------------


def is_arrow(data: Any) -> bool:
    """
    Not pandas, though it can: an index would come as a column, and its numbers are used where they lie only by way of
    NumPy.
    """
    return not hasattr(data, "iloc") and (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"))


def _read_arrow(data: Any) -> ctypes.c_void_p:
    """The capsules keep what they point to until the library has moved it away."""
    handle = ctypes.c_void_p()
    with Context() as context:
        if hasattr(data, "__arrow_c_stream__"):
            stream = data.__arrow_c_stream__()
            status = lib.thiele_table_from_arrow(
                ctypes.byref(handle), context.handle, _inside(stream, b"arrow_array_stream")
            )
        else:
            schema, batch = data.__arrow_c_array__()
            inside = _inside(schema, b"arrow_schema"), _inside(batch, b"arrow_array")
            status = lib.thiele_table_from_arrow_batch(ctypes.byref(handle), context.handle, *inside)
        context.check(status)
    return handle


def _inside(capsule: Any, name: bytes) -> int:
    """The pointer in a capsule of this name."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return get(capsule, name)


# --- columns of anything ---------------------------------------------------------------------------------------------


def _columns(data: Any, names: Optional[Sequence[str]]) -> list[tuple[str, Any]]:
    """Names and columns of whatever has some."""
    if isinstance(data, Mapping):
        found = [(str(name), column) for name, column in data.items()]
    elif hasattr(data, "column_names"):  # pyarrow
        found = [(str(name), data.column(i)) for i, name in enumerate(data.column_names)]
    elif hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas, also where two columns have one name
        found = [(str(name), data.iloc[:, i]) for i, name in enumerate(data.columns)]
    elif hasattr(data, "columns") and hasattr(data, "__getitem__"):
        found = [(str(name), data[name]) for name in data.columns]
    else:
        found = _columns_of_array(np.asarray(data))
    if names is None:
        return found
    if len(names) != len(found):
        raise ArgumentError(f"{len(names)} names were given for {len(found)} columns")
    return [(str(name), column) for name, (_, column) in zip(names, found)]


def _columns_of_array(array: NDArray[Any]) -> list[tuple[str, Any]]:
    if array.dtype.names is not None:
        return [(name, array[name]) for name in array.dtype.names]
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ArgumentError(f"a table has two dimensions, and the array has {array.ndim}")
    return [(f"x{i + 1}", array[:, i]) for i in range(array.shape[1])]


Read = tuple[NDArray[np.float64], Optional[NDArray[np.int32]], Optional[list[str]]]


def _read_column(name: str, values: Any) -> Read:
    """Numbers, or indices and their texts."""
    if getattr(getattr(values, "dtype", None), "name", "") == "category":
        values = getattr(values, "array", values)
        codes = np.ascontiguousarray(values.codes, dtype=np.int32)
        return np.empty(0), codes, [str(category) for category in values.categories]
    if _is_arrow_dictionary(values):
        whole = values.unify_dictionaries().combine_chunks()
        codes = whole.indices.fill_null(-1).to_numpy().astype(np.int32)
        return np.empty(0), codes, [str(category) for category in whole.dictionary.to_pylist()]
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind in "iufb" and hasattr(values, "isna"):  # pandas, whose own types know missing integers
        return _numbers(values.to_numpy(dtype=np.float64, na_value=math.nan)), None, None
    array = np.asarray(values)
    if array.ndim != 1:
        raise ArgumentError(f"column '{name}' has {array.ndim} dimensions and not one")
    if array.dtype.kind in "iufb":
        return _numbers(array), None, None
    if array.dtype.kind == "c":
        raise DataError(f"column '{name}' holds complex numbers: give their parts as columns of their own")
    if array.dtype.kind == "M":
        return _texts(None if np.isnat(day) else np.datetime_as_string(day) for day in array)
    return _texts(array.tolist())


def _is_arrow_dictionary(values: Any) -> bool:
    """Of pyarrow; NumPy would take its missing values for the last of the texts."""
    return hasattr(values, "unify_dictionaries") and hasattr(values.type, "index_type")


def _numbers(array: NDArray[Any]) -> NDArray[np.float64]:
    """As it lies in memory, where it can be read there."""
    numbers = array.astype(np.float64, copy=False)
    if not numbers.flags.aligned or not numbers.dtype.isnative:
        numbers = np.array(numbers, dtype=np.float64)
    return numbers


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    different = value != value
    return different is True or not isinstance(different, (bool, np.bool_)) or bool(different)


def _texts(values: Iterable[Any]) -> Read:
    """Numbers where all that is there is one, else texts."""
    values = list(values)
    missing = [_is_missing(value) for value in values]
    if all(gone or isinstance(value, (int, float, np.number)) for value, gone in zip(values, missing)):
        return np.array([math.nan if gone else float(v) for v, gone in zip(values, missing)]), None, None
    places: dict[str, int] = {}
    codes = np.array(
        [-1 if gone else places.setdefault(str(value), len(places)) for value, gone in zip(values, missing)],
        dtype=np.int32,
    )
    return np.empty(0), codes, list(places)
