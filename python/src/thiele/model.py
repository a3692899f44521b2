"""What a fitted model can do."""

from __future__ import annotations

import ctypes
import functools
import html
import json
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _library as c
from ._context import Context, ProgressLike
from ._library import lib
from .draws import draws_of, to_arviz
from .errors import ArgumentError
from .likelihood import Likelihood
from .prediction import Gatherer, Prediction, Shape
from .row import RowPredictor
from .scores import Scores
from .sums import open_sums, sums_options
from .table import Table, TableLike

Array = NDArray[np.float64]
STOPS = ("converged", "iterations", "deadline", "cancelled", "fixed")
UNSEEN = ("other", "zero", "error")


class Owner:
    """
    Destroys a model of the library when nothing uses it any more: Model objects, and predictors of rows. Keeps the
    likelihood whose functions it calls.
    """

    def __init__(self, handle: ctypes.c_void_p, likelihood: Optional[Likelihood]) -> None:
        self.handle = handle
        self.likelihood = likelihood
        weakref.finalize(self, lib.thiele_model_destroy, handle)


class Model:
    """
    A fitted model. Immutable: threads may share one, and ``update`` makes another. Comes from :func:`thiele.fit`
    and :meth:`load`; pickles as the bytes of its file.
    """

    def __init__(self, handle: ctypes.c_void_p, likelihood: Optional[Likelihood] = None) -> None:
        self._owner = Owner(handle, likelihood)
        self._handle = handle
        self._local = threading.local()

    # --- files -------------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]], likelihood: Optional[Likelihood] = None) -> Model:
        """
        A model file, of this package, the command or the C library. likelihood: your own, where it was fitted with one;
        without it only latent functions are predicted (``needs_likelihood``).
        """
        handle = ctypes.c_void_p()
        with Context() as context:
            context.check(lib.thiele_model_load(ctypes.byref(handle), context.handle, os.fsencode(path)))
            made = cls(handle, likelihood)
            if likelihood is not None:
                context.check(lib.thiele_model_attach(handle, context.handle, likelihood._handle))
        return made

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """To one file, which is the old one or the new one at any moment."""
        with Context() as context:
            context.check(lib.thiele_model_save(self._handle, context.handle, os.fsencode(path)))

    @classmethod
    def from_bytes(cls, content: bytes, likelihood: Optional[Likelihood] = None) -> Model:
        """From what a model file holds."""
        with tempfile.TemporaryDirectory(prefix="thiele-") as folder:
            path = os.path.join(folder, "model.thiele")
            with open(path, "wb") as file:
                file.write(content)
            return cls.load(path, likelihood)

    def to_bytes(self) -> bytes:
        """What its file would hold."""
        with tempfile.TemporaryDirectory(prefix="thiele-") as folder:
            path = os.path.join(folder, "model.thiele")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    def __reduce__(self) -> tuple[Any, tuple[bytes, Optional[Likelihood]]]:
        return Model.from_bytes, (self.to_bytes(), self.likelihood)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self

    # --- what it is --------------------------------------------------------------------------------------------------

    @functools.cached_property
    def targets(self) -> list[str]:
        """Names of the target columns."""
        return [
            lib.thiele_model_target(self._handle, i).decode() for i in range(lib.thiele_model_targets(self._handle))
        ]

    @functools.cached_property
    def inputs(self) -> list[str]:
        """Names of the input columns, and behind them that of a partition."""
        count = lib.thiele_model_inputs(self._handle)
        return [lib.thiele_model_input_name(self._handle, i).decode() for i in range(count)]

    @functools.cached_property
    def classes(self) -> list[str]:
        """The labels of a class target in the order of their numbers; empty when the target is a number."""
        return _classes(self._handle)

    @property
    def parameters(self) -> dict[str, float]:
        """What was learned, in the units of the data."""
        found, name, value = {}, ctypes.c_char_p(), ctypes.c_double()
        with Context() as context:
            for i in range(lib.thiele_model_parameters(self._handle)):
                out = (ctypes.byref(name), ctypes.byref(value))
                context.check(lib.thiele_model_parameter(self._handle, i, *out))
                found[(name.value or b"").decode()] = value.value
        return found

    @property
    def likelihood(self) -> Optional[Likelihood]:
        """Your own, where it was fitted with one."""
        return self._owner.likelihood

    @property
    def needs_likelihood(self) -> Optional[str]:
        """The name of the likelihood that must be given to ``load``; None: nothing is missing."""
        name = lib.thiele_model_needs_likelihood(self._handle)
        return name.decode() if name is not None else None

    @property
    def stop(self) -> str:
        """Why the fit ended: converged, iterations, deadline, cancelled, or fixed (there was nothing to learn)."""
        return STOPS[lib.thiele_model_stop(self._handle)]

    def describe(self) -> dict[str, Any]:
        """All that the model says of itself; docs/file-format.md lists the fields."""
        text = ctypes.c_void_p()
        with Context() as context:
            context.check(lib.thiele_model_describe(self._handle, context.handle, ctypes.byref(text)))
        try:
            return json.loads(ctypes.string_at(text.value or 0))
        finally:
            lib.thiele_free(text)

    @property
    def holdout(self) -> Union[Scores, dict[str, Scores], None]:
        """Scores on the rows that were held out; of several targets one each. None: no row was."""
        scores = lib.thiele_model_holdout(self._handle)
        if not scores or scores[0].rows == 0:
            return None
        return self._by_target([scores[i] for i in range(len(self.targets))])

    def loo(self) -> Optional[tuple[Array, Array]]:
        """Leave-one-out means and variances of the training targets (exact regression); None: there are none."""
        mean, variance = (ctypes.POINTER(ctypes.c_double)() for _ in range(2))
        rows = lib.thiele_model_loo(self._handle, ctypes.byref(mean), ctypes.byref(variance))
        if rows == 0:
            return None
        return np.ctypeslib.as_array(mean, (rows,)).copy(), np.ctypeslib.as_array(variance, (rows,)).copy()

    def draws(self) -> Array:
        """
        Of a sampler: the draws that it kept of the latent function, (chains, draws, rows of training), in the units of
        a target that is a number. They are thinned; ``describe()["sampling"]`` has diagnostics of all.
        """
        return draws_of(self)

    def to_arviz(self) -> Any:
        """The same as ArviZ takes them: variable f, dimensions chain, draw and row."""
        return to_arviz(self)

    # --- predictions -------------------------------------------------------------------------------------------------

    def predict(
        self,
        table: TableLike,
        *,
        latent: bool = False,
        quantiles: Sequence[float] = (),
        samples: int = 0,
        unseen: str = "other",
        drop_missing: bool = False,
        blend: bool = False,
        own_block: bool = False,
        seed: int = 0,
        threads: Optional[int] = None,
        progress: ProgressLike = False,
    ) -> Prediction:
        """
        Means, variances and what else is asked for, or probabilities of classes, for the rows of a table, whose columns
        are matched by name. latent: of the functions, not of observations. unseen: what to do with a value of a
        category that training never saw: "other" (one of the rare ones, with a warning), "zero" (none of the levels,
        where there are no rare ones) or "error". blend, own_block: of a model by pic.
        """
        table = Table.of(table)
        levels = np.ascontiguousarray(quantiles, dtype=np.float64)
        options = _predict_options(latent, unseen, drop_missing)
        options.quantiles = levels.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        options.quantile_count, options.samples = len(levels), samples
        options.blend, options.own_block = blend, own_block
        gatherer = Gatherer(
            self._shape(self._handle, None, latent, levels, samples), self._parts(latent, levels, samples)
        )
        with self._context(seed=seed, threads=threads, progress=progress) as context:
            status = lib.thiele_model_predict(
                self._handle, context.handle, table._handle, ctypes.byref(options), gatherer.function, None
            )
            if gatherer.error is not None:
                raise gatherer.error
            context.check(status)
        return gatherer.result()

    def predict_rows(
        self, x: ArrayLike, *, latent: bool = False, variance: bool = True, threads: Optional[int] = None
    ) -> Union[Array, tuple[Array, Array]]:
        """
        Mean and variance of rows of numbers, a column per input in the order of ``inputs`` (of a category the index of
        its level). Without variance the mean alone, which takes a fraction of the time. C-contiguous arrays of 64-bit
        floats are not copied. Arrays (rows,), or (rows, outputs) of several.
        """
        rows = self._rows(x)
        outputs = lib.thiele_model_latents(self._handle) if latent else len(self.targets)
        mean, spread = np.empty((len(rows), outputs)), np.empty((len(rows) if variance else 0, outputs))
        with self._context(threads=threads) as context:
            context.check(
                lib.thiele_model_predict_rows(
                    self._handle,
                    context.handle,
                    len(rows),
                    rows.ctypes.data,
                    int(latent),
                    mean.ctypes.data,
                    spread.ctypes.data if variance else None,
                )
            )
        if outputs == 1:
            mean, spread = mean[:, 0], spread[:, 0]
        return (mean, spread) if variance else mean

    def predict_probabilities(self, x: ArrayLike, *, threads: Optional[int] = None) -> Array:
        """The probability of each class, (rows, classes), for rows of numbers as in predict_rows."""
        rows = self._rows(x)
        probability = np.empty((len(rows), len(self.classes)))
        with self._context(threads=threads) as context:
            context.check(
                lib.thiele_model_predict_probabilities(
                    self._handle, context.handle, len(rows), rows.ctypes.data, probability.ctypes.data
                )
            )
        return probability

    def predict_joint(
        self, table: TableLike, *, latent: bool = False, unseen: str = "other", threads: Optional[int] = None
    ) -> tuple[Array, Array]:
        """The joint distribution of all rows of a table: mean (rows,) and covariance (rows, rows)."""
        table = Table.of(table)
        options = _predict_options(latent, unseen, False)
        mean, covariance = np.empty(len(table)), np.empty((len(table), len(table)))
        with self._context(threads=threads) as context:
            at = (mean.ctypes.data, covariance.ctypes.data)
            context.check(
                lib.thiele_model_predict_joint(self._handle, context.handle, table._handle, ctypes.byref(options), *at)
            )
        return mean, covariance

    def predictor(self, latent: bool = False) -> RowPredictor:
        """An object that predicts one row in microseconds; see :class:`RowPredictor`. One thread uses it at a time."""
        return RowPredictor(self, latent)

    def row(self, x: Union[Sequence[float], Array], variance: bool = False) -> Any:
        """The mean at one row, or mean and variance, by a predictor that is kept for each thread."""
        try:
            predictor = self._local.predictor
        except AttributeError:
            predictor = self._local.predictor = RowPredictor(self)
        return predictor(x, variance)

    # --- scores and more rows ----------------------------------------------------------------------------------------

    def score(
        self, table: TableLike, *, unseen: str = "other", drop_missing: bool = False, threads: Optional[int] = None
    ) -> Union[Scores, dict[str, Scores]]:
        """Scores on a table that has the target too; of several targets a dict of them."""
        table = Table.of(table)
        options = _predict_options(False, unseen, drop_missing)
        scores = (c.Scores * len(self.targets))()
        with self._context(threads=threads) as context:
            context.check(
                lib.thiele_model_score(self._handle, context.handle, table._handle, ctypes.byref(options), scores)
            )
        return self._by_target(list(scores))

    def log_densities(
        self, table: TableLike, *, unseen: str = "other", drop_missing: bool = False, threads: Optional[int] = None
    ) -> Array:
        """
        The log predictive density of each row's target, or the log probability of its label: (rows,), or
        (rows, targets) of several. NaN where a target is missing or the row was left out.
        """
        table = Table.of(table)
        options = _predict_options(False, unseen, drop_missing)
        made = np.empty((len(table), len(self.targets)))
        with self._context(threads=threads) as context:
            context.check(
                lib.thiele_model_log_densities(
                    self._handle, context.handle, table._handle, ctypes.byref(options), made.ctypes.data
                )
            )
        return made[:, 0] if made.shape[1] == 1 else made

    def report(
        self,
        table: Optional[TableLike] = None,
        path: Union[str, os.PathLike[str], None] = None,
        *,
        target: Optional[str] = None,
        unseen: str = "other",
        drop_missing: bool = False,
        threads: Optional[int] = None,
    ) -> dict[str, Any]:
        """
        Whether to trust the model: all numbers of a report (docs/report.md lists them), and at path one page of HTML.
        table: rows with the target that the model has not seen; None: about the model alone.
        """
        own = Table.of(table) if table is not None else None
        predict = _predict_options(False, unseen, drop_missing)
        options = c.ReportOptions(
            size=ctypes.sizeof(c.ReportOptions),
            target=target.encode() if target is not None else None,
            predict=ctypes.pointer(predict),
        )
        text = ctypes.c_void_p()
        with self._context(threads=threads) as context:
            context.check(
                lib.thiele_model_report(
                    self._handle,
                    context.handle,
                    own._handle if own is not None else None,
                    ctypes.byref(options),
                    os.fsencode(path) if path is not None else None,
                    ctypes.byref(text),
                )
            )
        try:
            return json.loads(ctypes.string_at(text.value or 0))
        finally:
            lib.thiele_free(text)

    def update(
        self,
        table: Union[TableLike, Iterator[TableLike]],
        *,
        batch: int = 0,
        forget: float = 0.0,
        time: Optional[str] = None,
        half_life: float = 0.0,
        window: int = 0,
        unseen: str = "other",
        drop_missing: bool = False,
        skip_bad: bool = False,
        deadline: float = 0.0,
        freeze: bool = False,
        keep: int = 0,
        seed: int = 0,
        threads: Optional[int] = None,
        progress: ProgressLike = False,
    ) -> Model:
        """
        A model that has learned these rows too; this one stays as it is. table: rows, or an iterator of batches of
        them, each of which is let go of when learned (a generator, a reader of pyarrow). forget: about how many of
        the last rows count; time, half_life: the column of the rows' times, and how long later what was learned counts
        half as much; freeze: parameters and inducing inputs stay as they are; keep: rows that they are learned from.
        0 is the default of the library everywhere. docs/streams.md says which models can.
        """
        batches = table if isinstance(table, Iterator) else iter([table])
        options = c.UpdateOptions(
            size=ctypes.sizeof(c.UpdateOptions),
            batch=batch,
            forget=forget,
            time=None if time is None else time.encode(),
            half_life=half_life,
            window=window,
            unseen=_unseen(unseen),
            drop_missing=drop_missing,
            skip_bad=skip_bad,
            deadline=deadline,
            freeze=freeze,
            keep=keep,
        )
        handle, learner = ctypes.c_void_p(), ctypes.c_void_p()
        with self._context(seed=seed, threads=threads, progress=progress) as context:
            context.check(
                lib.thiele_learner_open(ctypes.byref(learner), context.handle, self._handle, ctypes.byref(options))
            )
            try:
                for rows in batches:
                    batch_table = Table.of(rows)  # lives as long as the call
                    context.check(lib.thiele_learner_add(learner, context.handle, batch_table._handle))
                    if STOPS[lib.thiele_learner_stop(learner)] != "converged" or context.interrupts > 0:
                        break
                context.check(lib.thiele_learner_settle(learner, context.handle))
                context.check(lib.thiele_learner_model(learner, context.handle, ctypes.byref(handle)))
            finally:
                lib.thiele_learner_close(learner)
            made = type(self)(handle, self.likelihood)
            context.keep_result("interrupted: the model has learned the rows so far, not all of them")
        return made

    def plot(self, over: Optional[str] = None, table: Optional[TableLike] = None, **options: Any) -> Any:
        """A slice: what is predicted while one input moves. See :func:`thiele.plot.slice`."""
        from .plot import slice

        return slice(self, over, table, **options)

    def sums(
        self, table: TableLike, *, unseen: str = "other", drop_missing: bool = False, threads: Optional[int] = None
    ) -> bytes:
        """
        What the rows of a table say to this model, for :func:`thiele.combine`: parts may be made anywhere, in other
        processes and on other machines, and their order and their cut make no difference. docs/scale.md says of which
        models.
        """
        table = Table.of(table)
        options = sums_options(_unseen(unseen), drop_missing)
        with self._context(threads=threads) as context, open_sums(context, self) as sums:
            context.check(lib.thiele_sums_add(sums.handle, context.handle, table._handle, ctypes.byref(options)))
            return sums.pack()

    # --- helpers -----------------------------------------------------------------------------------------------------

    def _context(self, **options: Any) -> Context:
        return Context(own=self.likelihood, **options)

    def _rows(self, x: ArrayLike) -> Array:
        rows = np.ascontiguousarray(x, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.inputs):
            raise ArgumentError(
                f"rows of this model have {len(self.inputs)} values ({', '.join(self.inputs)}), and the array has the "
                f"shape {rows.shape}"
            )
        return rows

    def _by_target(self, scores: Sequence[c.Scores]) -> Union[Scores, dict[str, Scores]]:
        each = [Scores(one) for one in scores]
        return each[0] if len(each) == 1 else dict(zip(self.targets, each))

    def _shape(
        self, handle: ctypes.c_void_p, target: Optional[str], latent: bool, levels: Array, samples: int
    ) -> Shape:
        names = [target] if target is not None else self.targets
        if latent:
            names = [f"f{i + 1}" for i in range(lib.thiele_model_latents(handle))]
        return Shape(names, np.array(_classes(handle)), levels.tolist(), samples)

    def _parts(self, latent: bool, levels: Array, samples: int) -> dict[str, Shape]:
        found = {}
        for i, target in enumerate(self.targets):
            part = lib.thiele_model_part(self._handle, i)
            if part:
                found[target] = self._shape(ctypes.c_void_p(part), target, latent, levels, samples)
        return found

    def _summary(self) -> list[tuple[str, str]]:
        about = self.describe()
        lines = [(str(name), str(about[name])) for name in ("method", "kernel", "rows", "stop") if name in about]
        lines.insert(0, ("target", ", ".join(self.targets)))
        return lines + [(name, f"{value:.5g}") for name, value in self.parameters.items()]

    def __repr__(self) -> str:
        about = self.describe()
        return f"<thiele.Model of {', '.join(self.targets)}: {about.get('method')}, {about.get('rows')} rows>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>{html.escape(value)}"
            "</td></tr>"
            for name, value in self._summary()
        )
        return f"<table>{rows}</table>"


def _predict_options(latent: bool, unseen: str, drop_missing: bool) -> c.PredictOptions:
    return c.PredictOptions(
        size=ctypes.sizeof(c.PredictOptions), latent=latent, unseen=_unseen(unseen), drop_missing=drop_missing
    )


def _unseen(unseen: str) -> int:
    if unseen not in UNSEEN:
        raise ArgumentError(f"unseen: '{unseen}' is none of {', '.join(UNSEEN)}")
    return UNSEEN.index(unseen)


def _classes(handle: ctypes.c_void_p) -> list[str]:
    return [lib.thiele_model_class(handle, i).decode() for i in range(lib.thiele_model_classes(handle))]
