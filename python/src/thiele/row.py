"""One row at a time, in microseconds."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

import numpy as np
from numpy.typing import NDArray

from ._context import Context
from ._library import lib
from .errors import BY_STATUS

if TYPE_CHECKING:
    from .model import Model

Array = NDArray[np.float64]


class RowPredictor:
    """
    Made once from a model, called with one row. ``predictor(x)`` is the mean, ``predictor(x, variance=True)`` mean and
    variance: numbers of a single output, else arrays that the next call overwrites. x: a value per input in the order
    of ``model.inputs``; a category is the index of its level. One thread uses a predictor at a time.
    """

    def __init__(self, model: Model, latent: bool = False) -> None:
        handle = ctypes.c_void_p()
        with Context(threads=1) as context:
            context.check(lib.thiele_predictor_open(ctypes.byref(handle), context.handle, model._handle, int(latent)))
        weakref.finalize(self, _destroy, handle, model._owner)
        self._handle = handle
        self.inputs = model.inputs
        self._single = lib.thiele_predictor_outputs(handle) == 1
        outputs = max(1, lib.thiele_predictor_outputs(handle))
        self._x, self._mean, self._variance = np.empty(len(self.inputs)), np.empty(outputs), np.empty(outputs)
        self._probability = np.empty(max(1, len(model.classes)))
        arrays = (self._x, self._mean, self._variance, self._probability)
        self._at = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        self._row = lib.thiele_predictor_row

    def __call__(
        self, x: Union[Sequence[float], Array], variance: bool = False
    ) -> Union[float, Array, tuple[float, float], tuple[Array, Array]]:
        if len(x) != self._x.size:
            self._wrong_size(x)
        self._x[:] = x
        at = self._at
        status = self._row(self._handle, at[0], at[1], at[2] if variance else None)
        if status:
            self._fail(status)
        if self._single:
            mean = self._mean.item()
            return (mean, self._variance.item()) if variance else mean
        return (self._mean, self._variance) if variance else self._mean

    def probabilities(self, x: Union[Sequence[float], Array]) -> Array:
        """Of each class; overwritten by the next call."""
        if len(x) != self._x.size:
            self._wrong_size(x)
        self._x[:] = x
        status = lib.thiele_predictor_probabilities(self._handle, self._at[0], self._at[3])
        if status:
            self._fail(status)
        return self._probability

    def _fail(self, status: int) -> None:
        raise BY_STATUS[status](lib.thiele_predictor_message(self._handle).decode(errors="replace"))

    def _wrong_size(self, x: Union[Sequence[float], Array]) -> None:
        raise ValueError(f"a row of this model has {self._x.size} values ({', '.join(self.inputs)}), not {len(x)}")


def _destroy(handle: ctypes.c_void_p, owner: object) -> None:
    """The model, which its owner keeps, must live longer."""
    lib.thiele_predictor_destroy(handle)
