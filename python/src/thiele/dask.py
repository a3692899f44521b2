"""
Estimators over Dask collections: rows that lie in many pieces, on one machine or on many. Workers run functions without
a state: a model goes out, sums over rows come back as bytes (``Model.sums``), so that retries, spilling and workers
that come and go are the engine's business. Neither the pieces nor the workers change a bit of the result.
"""

from __future__ import annotations

from typing import Any, Optional

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone

from .errors import ArgumentError
from .regressor import GPRegressor as _LocalRegressor
from .sums import add_sums, combine

__all__ = ["GPRegressor"]

Array = NDArray[np.float64]
#: Sums that one task adds up.
_TOGETHER = 16


class GPRegressor(RegressorMixin, BaseEstimator):
    """
    Gaussian-process regression of a Dask array or data frame. Kernel, noise and inducing inputs are learned from
    ``sample`` rows, evenly spread over all; then every row speaks: the posterior is that of all rows, exactly, for
    Gaussian noise. The model has the same bits with any number of workers, and with any partition of the same rows; so
    do predictions of the same partition.

    Parameters
    ----------
    estimator : thiele.GPRegressor or None
        What the sample is fitted with. None: ``thiele.GPRegressor(method="collapsed")``. Its method must be one whose
        rows have sums: collapsed, variational, sor, dtc, fitc or fic, with Gaussian noise.
    sample : int, default 20000
        Rows that parameters and inducing inputs are learned from, at most.

    Attributes
    ----------
    model_ : thiele.Model
        What was fitted; it can be saved for the command and the C library.
    estimator_ : thiele.GPRegressor
        The same, for tables in memory.
    rows_ : int
        Rows that it has learned from.
    """

    def __init__(self, estimator: Optional[_LocalRegressor] = None, sample: int = 20000) -> None:
        self.estimator = estimator
        self.sample = sample

    def fit(self, X: Any, y: Any) -> GPRegressor:
        """X: a Dask array (rows, inputs) or data frame; y: a Dask array or series with the same rows."""
        if self.sample < 2:
            raise ArgumentError(f"a sample of {self.sample} rows says nothing: at least 2 are needed")
        pieces = _pieces(X, y)
        lengths = dask.compute(*[dask.delayed(_count)(*piece) for piece in pieces])
        self.rows_ = sum(lengths)
        step = max(1, -(-self.rows_ // self.sample))
        firsts = [-(sum(lengths[:k])) % step for k in range(len(lengths))]
        few = dask.compute(*[dask.delayed(_every)(*p, first, step) for p, first in zip(pieces, firsts)])
        base = clone(self.estimator) if self.estimator is not None else _LocalRegressor(method="collapsed")
        local = base.fit(_stack([x for x, _ in few]), np.concatenate([np.asarray(t) for _, t in few]))
        sent = dask.delayed(local)
        sums = [dask.delayed(_sum)(sent, *piece) for piece in pieces]
        while len(sums) > 1:
            sums = [dask.delayed(_add)(sent, sums[k : k + _TOGETHER]) for k in range(0, len(sums), _TOGETHER)]
        local._take(combine(local.model_, dask.compute(*sums)))
        self.estimator_, self.model_ = local, local.model_
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """
        Means of observations; with return_std standard deviations too. Of Dask collections lazily, as Dask arrays, else
        at once.
        """
        if not hasattr(X, "to_delayed"):
            return self.estimator_.predict(X, return_std=return_std)
        import dask.array as da

        sent, made = dask.delayed(self.estimator_), []
        pieces = _row_pieces(X)
        lengths = _known_lengths(X) or dask.compute(*[dask.delayed(len)(piece) for piece in pieces])
        for piece, length in zip(pieces, lengths):
            both = dask.delayed(_predict)(sent, piece, return_std)
            made.append(da.from_delayed(both, (2 if return_std else 1, length), dtype=np.float64))
        both = da.concatenate(made, axis=1)
        return (both[0], both[1]) if return_std else both[0]


# --- pieces of collections --------------------------------------------------------------------------------------------


def _known_lengths(X: Any) -> Optional[tuple[int, ...]]:
    """Rows of each piece of an array that knows them."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or any(np.isnan(length) for length in chunks[0]):
        return None
    return chunks[0]


def _row_pieces(X: Any) -> list[Any]:
    """One delayed table for each piece, all columns together."""
    if getattr(X, "chunks", None) is not None and X.ndim == 2 and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    pieces = X.to_delayed()
    return list(pieces.ravel()) if isinstance(pieces, np.ndarray) else list(pieces)


def _pieces(X: Any, y: Any) -> list[tuple[Any, Any]]:
    for name, given in (("X", X), ("y", y)):
        if not hasattr(given, "to_delayed"):
            raise ArgumentError(
                f"{name} is not a Dask collection: thiele.GPRegressor fits tables in memory, "
                "dask.array.from_array makes one"
            )
    here, there = _known_lengths(X), _known_lengths(y)
    if here is not None and there is not None and here != there and sum(here) == sum(there):
        y = y.rechunk({0: here})
    inputs, targets = _row_pieces(X), _row_pieces(y)
    if len(inputs) != len(targets):
        raise ArgumentError(f"X is in {len(inputs)} pieces and y in {len(targets)}: let both have the same partitions")
    return list(zip(inputs, targets))


def _stack(tables: list[Any]) -> Any:
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    import pandas as pd

    return pd.concat(tables, ignore_index=True)


# --- what workers do --------------------------------------------------------------------------------------------------


def _count(X: Any, y: Any) -> int:
    if len(X) != len(y):
        raise ArgumentError(f"a piece has {len(X)} rows of X and {len(y)} of y: let both have the same partitions")
    return len(X)


def _every(X: Any, y: Any, first: int, step: int) -> tuple[Any, Any]:
    rows = slice(first, None, step)
    return (X[rows], y[rows]) if isinstance(X, np.ndarray) else (X.iloc[rows], np.asarray(y)[rows])


def _sum(local: _LocalRegressor, X: Any, y: Any) -> bytes:
    X = local._check_rows(X, reset=False) if len(X) > 0 else X
    if len(X) == 0:
        return add_sums(local.model_, [])
    targets = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
    return local.model_.sums(
        local._table(X, dict(zip(local.model_.targets, targets.T))), drop_missing=local.drop_missing, threads=1
    )


def _add(local: _LocalRegressor, parts: list[bytes]) -> bytes:
    return add_sums(local.model_, parts)


def _predict(local: _LocalRegressor, X: Any, return_std: bool) -> Array:
    if len(X) == 0:
        return np.empty((2 if return_std else 1, 0))
    made = local.predict(X, return_std=return_std)
    return np.stack(made) if isinstance(made, tuple) else made[None, :]
