"""What a model predicts while one input moves and the others stay: the numbers of a picture."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np
from numpy.typing import NDArray

from ._library import lib
from .errors import ArgumentError
from .table import Table, TableLike

if TYPE_CHECKING:
    from .model import Model
    from .prediction import Prediction

Array = NDArray[np.float64]
Value = Union[float, str]

#: Bounds of the central 90% and 50%.
LEVELS = (0.05, 0.25, 0.75, 0.95)
_PLACES, _ROWS = 200, 2000


@dataclass
class Slice:
    over: str
    places: list[Any]  #: levels, or numbers (of dates: days since the model's first)
    since: Optional[str]  #: the first date, where places are days
    made: Prediction  #: of one target
    at: dict[str, Value]  #: where the others stay
    near: tuple[list[Any], list[Any]]  #: places and targets of the rows that belong to the slice


class Input:
    """A column as the model reads it."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.name: str = about["name"]
        self.levels: list[str] = about.get("levels") or []
        self.dates: Optional[str] = about.get("dates")
        self.since: Optional[str] = about.get("since")
        self.first: float = about.get("from", 0.0)
        self.center, self.scale = about.get("center", 0.0), about.get("scale", 1.0)

    def usual(self) -> Value:
        return self.levels[0] if self.levels else self.center

    def usual_of(self, values: Sequence[Any]) -> Value:
        """The most frequent level, or the median."""
        there = [v for v in values if v is not None and v == v]
        if not there:
            return self.usual()
        if self.levels:
            return max(sorted(set(there)), key=there.count)
        return float(np.median(there))

    def read(self, texts: Sequence[str]) -> list[Any]:
        """Levels as they are, numbers and dates as numbers; what is missing is NaN, or None."""
        if self.levels:
            return [text.strip() or None for text in texts]
        if self.dates is not None:
            return [_days(text, self.dates) - self.first for text in texts]
        return [float(text) if text.strip() else np.nan for text in texts]


def _days(text: str, form: str) -> float:
    day = ctypes.c_double()
    read = lib.thiele_date_read(text.strip().encode(), form.encode(), ctypes.byref(day))
    return day.value if read else np.nan


def one_target(made: Prediction, target: str) -> Prediction:
    """The part of a prediction that is about one of several targets."""
    from dataclasses import replace

    if made.parts:
        return made.parts[target]
    if len(made.outputs) < 2 or made.probability is not None:
        return made
    i = made.outputs.index(target)
    return replace(
        made,
        outputs=[target],
        mean=None if made.mean is None else made.mean[:, i],
        variance=None if made.variance is None else made.variance[:, i],
        quantiles=None if made.quantiles is None else made.quantiles[:, i],
    )


def choose_target(model: Model, target: Optional[str]) -> str:
    if target is not None and target not in model.targets:
        raise ArgumentError(f"the model has no target '{target}': it has {', '.join(model.targets)}")
    return target if target is not None else model.targets[0]


class Slicer:
    def __init__(self, model: Model, table: Optional[TableLike], at: Optional[Mapping[str, Value]]) -> None:
        about = model.describe()["columns"]
        self.model = model
        self.inputs = {each["name"]: Input(each) for each in about["inputs"]}
        for name in at or ():
            if name not in self.inputs:
                raise ArgumentError(f"at: the model has no input '{name}': it has {', '.join(self.inputs)}")
        self.table = None if table is None else Table.of(table)
        self.sample: list[int] = []
        self.cells: dict[str, list[Any]] = {}
        self.extra: dict[str, Any] = {}
        if self.table is not None:
            count = min(len(self.table), _ROWS)
            self.sample = [len(self.table) * i // count for i in range(count)]
            self.cells = {name: one.read(self.table.cells(name, self.sample)) for name, one in self.inputs.items()}
        self.at = {
            name: one.usual_of(self.cells[name]) if name in self.cells else one.usual()
            for name, one in self.inputs.items()
        }
        self.at.update(at or {})
        for part, column in (("exposure", about.get("exposure")), ("partition", about.get("partition"))):
            if column is not None:
                self._add_extra({"name": column, "center": 1.0} if part == "exposure" else column)

    def _add_extra(self, about: Mapping[str, Any]) -> None:
        """A column that is no input and that predictions ask for all the same."""
        one = Input(about)
        if one.name not in self.inputs:
            there = self.table is not None and one.name in self.table.columns
            texts = self.table.cells(one.name, self.sample) if self.table is not None and there else []
            self.extra[one.name] = one.usual_of(one.read(texts))

    def _predict(self, columns: dict[str, list[Any]], target: str, quantiles: Sequence[float]) -> Prediction:
        count = len(next(iter(columns.values())))
        rows = {**columns, **{name: [value] * count for name, value in self.extra.items()}}
        return one_target(self.model.predict(rows, quantiles=quantiles), target)

    def places(self, over: str, span: Optional[tuple[float, float]]) -> list[Any]:
        one = self.inputs[over]
        if one.levels:
            return list(one.levels)
        there = [value for value in self.cells.get(over, []) if value == value]
        low, high = one.center - 2.0 * one.scale, one.center + 2.0 * one.scale
        if there:
            low, high = min(there), max(there)
        low, high = span or (low, high)
        return np.linspace(low, high, _PLACES).tolist()

    def slice(self, over: str, target: str, span: Optional[tuple[float, float]]) -> Slice:
        places = self.places(over, span)
        rows = {name: [value] * len(places) for name, value in self.at.items()}
        rows[over] = places
        made = self._predict(rows, target, () if self.model.classes else LEVELS)
        at = {name: value for name, value in self.at.items() if name != over}
        return Slice(over, places, self.inputs[over].since, made, at, self._near(over, places, made, target))

    def _near(self, over: str, places: list[Any], made: Prediction, target: str) -> tuple[list[Any], list[Any]]:
        """Rows whose own prediction is within half a standard deviation (0.1 in probability) of the slice's."""
        if self.table is None or target not in self.table.columns:
            return [], []
        own = self._predict({name: list(cells) for name, cells in self.cells.items()}, target, ())
        kept = own.rows
        x = [self.cells[over][i] for i in kept]
        texts = self.table.cells(target, [self.sample[i] for i in kept])
        y: list[Any]
        if made.probability is not None and own.probability is not None:
            apart = np.max(np.abs(own.probability - self._between(places, made.probability, x)), axis=1)
            near, y = apart < 0.1, [*texts]
        else:
            assert own.mean is not None and made.mean is not None and made.sd is not None
            sd = self._between(places, made.sd[:, None], x)[:, 0]
            near = np.abs(own.mean - self._between(places, made.mean[:, None], x)[:, 0]) <= 0.5 * sd
            y = [float(text) if text.strip() else np.nan for text in texts]
        return [v for v, keep in zip(x, near) if keep], [v for v, keep in zip(y, near) if keep]

    def _between(self, places: list[Any], values: Array, x: list[Any]) -> Array:
        """Values at places, at x."""
        if isinstance(places[0], str):
            where = {place: i for i, place in enumerate(places)}
            return np.array([values[where[v]] if v in where else np.full(values.shape[1], np.nan) for v in x])
        return np.column_stack([np.interp(x, places, column, left=np.nan, right=np.nan) for column in values.T])
