"""
Gaussian-process inference at scale: fits, predictions with honest uncertainty, one model file for C, command and
Python.

``thiele.fit`` and :class:`Model` are for tables and files, ``GPRegressor`` and ``GPClassifier`` have scikit-learn's
manners (and need it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._library import lib as _lib
from ._progress import ProgressReport, TrainingLog
from .errors import (
    ArgumentError,
    CancelledError,
    ColumnError,
    DataError,
    FileError,
    FormatError,
    LimitError,
    NumericError,
    OutOfMemoryError,
    ThieleError,
    ThieleWarning,
    UnsupportedError,
)
from .fitting import CrossValidation, cross_validate, fit
from .likelihood import Likelihood
from .model import Model
from .options import Option, options
from .prediction import Prediction
from .row import RowPredictor
from .scores import Scores
from .sums import add_sums, combine
from .table import Table

if TYPE_CHECKING:
    from . import plot
    from .classifier import GPClassifier
    from .regressor import GPRegressor

__version__: str = _lib.thiele_version().decode()

__all__ = [
    "ArgumentError",
    "CancelledError",
    "ColumnError",
    "CrossValidation",
    "DataError",
    "FileError",
    "FormatError",
    "GPClassifier",
    "GPRegressor",
    "Likelihood",
    "LimitError",
    "Model",
    "NumericError",
    "Option",
    "OutOfMemoryError",
    "Prediction",
    "ProgressReport",
    "RowPredictor",
    "Scores",
    "Table",
    "ThieleError",
    "ThieleWarning",
    "TrainingLog",
    "UnsupportedError",
    "add_sums",
    "combine",
    "cross_validate",
    "fit",
    "options",
    "plot",
]

# What needs more than NumPy is imported when it is asked for.
_LAZY = {"GPRegressor": "regressor", "GPClassifier": "classifier"}


def __getattr__(name: str) -> Any:
    if name == "plot":
        from importlib import import_module

        return import_module(".plot", __name__)
    if name not in _LAZY:
        raise AttributeError(f"module 'thiele' has no attribute '{name}'")
    from importlib import import_module

    try:
        value = getattr(import_module("." + _LAZY[name], __name__), name)
    except ImportError as error:
        if not (error.name or "").startswith("sklearn"):
            raise
        raise ImportError(
            f"thiele.{name} needs scikit-learn 1.4 or later ({error}): pip install scikit-learn"
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
