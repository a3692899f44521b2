"""What a model predicts for the rows of a table, gathered from the library's blocks."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from . import _library as c

Array = NDArray[np.float64]


@dataclass
class Prediction:
    """
    One entry per row that was predicted. Of a single target (or latent function) the arrays have no axis for it; of
    several it comes second: mean (rows, targets), quantiles (rows, targets, quantiles). A class target has
    ``probability`` (rows, classes) in place of mean and variance. Targets with a model each are in ``parts``.
    """

    rows: NDArray[np.int64]  #: of the table, from 0
    outputs: list[str]
    mean: Optional[Array] = None
    variance: Optional[Array] = None
    quantiles: Optional[Array] = None
    samples: Optional[Array] = None
    probability: Optional[Array] = None
    classes: Optional[NDArray[Any]] = None
    levels: Sequence[float] = ()  #: of the quantiles
    parts: dict[str, Prediction] = field(default_factory=dict)

    @property
    def sd(self) -> Optional[Array]:
        """Standard deviations."""
        return None if self.variance is None else np.sqrt(self.variance)

    @property
    def label(self) -> Optional[NDArray[Any]]:
        """The most probable class of each row."""
        if self.probability is None or self.classes is None:
            return None
        return self.classes[np.argmax(self.probability, axis=1)]

    def __len__(self) -> int:
        return len(self.rows)

    def to_frame(self) -> Any:
        """A pandas DataFrame with the columns that the command writes, indexed by the rows of the table."""
        import pandas as pd

        columns: dict[str, Any] = {}
        if self.parts:
            for target, part in self.parts.items():
                part._add_columns(columns, "." + target)
        else:
            self._add_columns(columns, "")
        return pd.DataFrame(columns, index=pd.Index(self.rows, name="row"))

    def _add_columns(self, columns: dict[str, Any], suffix: str) -> None:
        if self.probability is not None and self.classes is not None:
            columns["label" + suffix] = self.label
            for i, label in enumerate(self.classes):
                columns[f"p{suffix}.{label}"] = self.probability[:, i]
        several = len(self.outputs) > 1
        for i, name in enumerate(self.outputs):
            end = "." + name if several else suffix
            one = (slice(None), i) if several else (slice(None),)
            if self.mean is not None and self.sd is not None:
                columns["mean" + end] = self.mean[one]
                columns["sd" + end] = self.sd[one]
            if self.quantiles is not None:
                for q, level in enumerate(self.levels):
                    columns[f"q{level:g}{end}"] = self.quantiles[one][:, q]
            if self.samples is not None:
                for s in range(self.samples.shape[-1]):
                    columns[f"s{s + 1}{end}"] = self.samples[one][:, s]


@dataclass(frozen=True)
class Shape:
    """Of one model or part: names of outputs and of classes, numbers per output."""

    outputs: list[str]
    classes: NDArray[Any]
    quantiles: Sequence[float]
    samples: int


class Gatherer:
    """Copies the blocks that the library hands out; gives them as one Prediction in the end."""

    def __init__(self, shape: Shape, parts: dict[str, Shape]) -> None:
        self.error: Optional[BaseException] = None
        self.function = c.PredictionFunction(self._on_block)
        self._shape, self._parts = shape, parts
        self._rows: list[NDArray[np.int64]] = []
        self._blocks: list[dict[str, Array]] = []
        self._part_blocks: dict[str, list[dict[str, Array]]] = {name: [] for name in parts}

    def _on_block(self, pointer: Any, user: object) -> int:
        try:
            block = pointer.contents
            self._rows.append(_copy(block.row, (block.rows,), ctypes.c_int64))
            if block.parts > 0:
                for i, (name, shape) in enumerate(self._parts.items()):
                    self._part_blocks[name].append(_arrays(block.part[i], block.rows, shape))
            else:
                self._blocks.append(_arrays(block, block.rows, self._shape))
        except BaseException as error:
            self.error = error
            return -10
        return 0

    def result(self) -> Prediction:
        rows = np.concatenate(self._rows) if self._rows else np.empty(0, np.int64)
        made = _joined(rows, self._blocks, self._shape)
        for name, shape in self._parts.items():
            made.parts[name] = _joined(rows, self._part_blocks[name], shape)
        return made


def _copy(address: Optional[int], shape: tuple[int, ...], kind: Any = ctypes.c_double) -> Any:
    count = int(np.prod(shape))
    return np.ctypeslib.as_array((kind * count).from_address(address)).reshape(shape).copy() if address else None


def _arrays(block: c.Prediction, rows: int, shape: Shape) -> dict[str, Array]:
    """The library's arrays are column-major with a row of the table a column: here rows come first."""
    outputs = block.outputs
    found = {
        "mean": _copy(block.mean, (rows, outputs)),
        "variance": _copy(block.variance, (rows, outputs)),
        "quantiles": _copy(block.quantiles, (rows, outputs, len(shape.quantiles))),
        "samples": _copy(block.samples, (rows, outputs, shape.samples)),
        "probability": _copy(block.probability, (rows, block.classes)),
    }
    return {name: array for name, array in found.items() if array is not None}


def _joined(rows: NDArray[np.int64], blocks: list[dict[str, Array]], shape: Shape) -> Prediction:
    made = Prediction(rows=rows, outputs=shape.outputs, levels=shape.quantiles)
    for name in blocks[0] if blocks else ():
        whole = np.concatenate([block[name] for block in blocks])
        setattr(made, name, whole[:, 0] if name != "probability" and whole.shape[1] == 1 else whole)
    if made.probability is not None:
        made.classes = shape.classes
    return made
