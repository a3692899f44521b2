"""Fitting a model to a table, and scoring a specification by folds."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from . import _library as c
from ._context import Context, ProgressLike
from ._library import lib
from .errors import DataError
from .likelihood import Likelihood
from .model import Model
from .options import FitOptions, join_list
from .scores import Scores
from .table import Table, TableLike, is_arrow

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import OptionTypes

Target = Union[str, Sequence[str]]


class CrossValidation(NamedTuple):
    """Scores by folds."""

    overall: Scores
    folds: list[Scores]


def fit(
    table: Union[TableLike, Iterator[TableLike]],
    target: Target,
    *,
    seed: int = 0,
    threads: Optional[int] = None,
    memory_limit: int = 0,
    device: Optional[str] = None,
    progress: ProgressLike = None,
    **options: Unpack[OptionTypes],
) -> Model:
    """
    Fits a model to a table: anything that :class:`Table` takes, or the name of a file. Of an iterator of batches the
    first, which should have some thousand rows, is fitted, and the others are learned as by ``Model.update``, each once
    and in bounded memory.

    target is a column, or several. The options are those of the command, with the same names and defaults:
    ``thiele.options()`` has them as data. Ctrl-C ends the fit with the best model so far, and a warning; two raise
    KeyboardInterrupt. device: "cpu", "cuda" or "cuda:1"; None: a card where there is one and it is quicker.

    progress: a function that is told how far the fit is and ends it by returning something true; True: a bar (with
    tqdm); None: a bar on a terminal.
    """
    if isinstance(table, Iterator) and not is_arrow(table):
        about: dict[str, Any] = {"seed": seed, "threads": threads, "progress": progress}
        first = next(table, None)
        if first is None:
            raise DataError("there was no batch to fit a model to")
        given: Any = {"compact": True, **options}
        return fit(first, target, memory_limit=memory_limit, device=device, **about, **given).update(table, **about)
    table = Table.of(table)
    handle = ctypes.c_void_p()
    own = _own_likelihood(options)
    with Context(
        threads=threads, seed=seed, memory_limit=memory_limit, device=device, progress=progress, own=own
    ) as context:
        with _fit_options(context, table, target, options, own) as ready:
            status = lib.thiele_model_fit(ctypes.byref(handle), context.handle, table._handle, ready.handle)
        context.check(status)
        made = Model(handle, own)
        context.keep_result("interrupted: this is the best model so far")
    return made


def cross_validate(
    table: TableLike,
    target: Target,
    *,
    folds: int = 5,
    seed: int = 0,
    threads: Optional[int] = None,
    memory_limit: int = 0,
    device: Optional[str] = None,
    progress: ProgressLike = None,
    **options: Unpack[OptionTypes],
) -> CrossValidation:
    """Scores each of ``folds`` parts of the rows by a model that is fitted to the others; options as in :func:`fit`."""
    table = Table.of(table)
    each, overall = (c.Scores * max(1, folds))(), c.Scores()
    own = _own_likelihood(options)
    with Context(
        threads=threads, seed=seed, memory_limit=memory_limit, device=device, progress=progress, own=own
    ) as context:
        with _fit_options(context, table, target, options, own) as ready:
            status = lib.thiele_cross_validate(
                context.handle, table._handle, ready.handle, folds, each, ctypes.byref(overall)
            )
        context.check(status)
    return CrossValidation(Scores(overall), [Scores(one) for one in each])


def _own_likelihood(options: Any) -> Optional[Likelihood]:
    own = options.get("likelihood")
    return own if isinstance(own, Likelihood) else None


def _fit_options(context: Context, table: Table, target: Target, options: Any, own: Optional[Likelihood]) -> FitOptions:
    values = {"target": target if isinstance(target, str) else join_list(target), **options}
    if table.categories and not isinstance(values.get("categorical"), str):
        inputs = [name for name in table.categories if name not in ([target] if isinstance(target, str) else target)]
        listed = [*(values.get("categorical") or ()), *inputs]
        values["categorical"] = list(dict.fromkeys(listed)) or None
    if own is not None:
        values["likelihood"] = None
    return FitOptions(context, values, own)
