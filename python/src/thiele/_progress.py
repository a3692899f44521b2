"""How far a fit has come: told to a function of the caller, or shown as a bar where tqdm is installed."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields
from typing import Any, Callable, Union

from . import _library as c


@dataclass(frozen=True)
class ProgressReport:
    """What a progress callback is told. NaN: there is no such number now; total 0: it is not known."""

    phase: str
    done: int
    total: int
    value: float  #: the objective: the best so far or, of noisy steps, a running average
    seconds: float  #: since the work began
    seconds_left: float  #: an estimate
    expected: float  #: of a variational method, E[log p(y | f)]
    divergence: float  #: of its posterior from the prior
    step: float  #: its length
    rows_per_second: float
    held_out: float  #: root mean squared error on rows that are held out


class TrainingLog:
    """Keeps what a fit tells of itself: ``thiele.fit(..., progress=log)``, then ``thiele.plot.training(log)``."""

    def __init__(self) -> None:
        self.reports: list[ProgressReport] = []

    def __call__(self, report: ProgressReport) -> None:
        self.reports.append(report)

    def __len__(self) -> int:
        return len(self.reports)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each report."""
        import pandas as pd

        return pd.DataFrame([vars(report) for report in self.reports])


class Silent:
    def tell(self, progress: c.Progress) -> bool:
        return False

    def close(self) -> None:
        pass


class Function(Silent):
    """A function of the caller; what it returns, where true, asks the work to stop."""

    def __init__(self, function: Callable[[ProgressReport], object]) -> None:
        self._function = function

    def tell(self, progress: c.Progress) -> bool:
        numbers = {field.name: getattr(progress, field.name) for field in fields(ProgressReport)}
        numbers["phase"] = progress.phase.decode()
        return bool(self._function(ProgressReport(**numbers)))


class Bar(Silent):
    """A bar for each phase, from its second second on."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None
        self._phase = ""

    def tell(self, progress: c.Progress) -> bool:
        phase = progress.phase.decode()
        if phase != self._phase:
            self.close()
            self._phase = phase
            self._bar = self._tqdm(desc=phase, total=progress.total or None, delay=1.0, leave=False)
        if progress.total:
            self._bar.total = progress.total
        if not math.isnan(progress.value):
            self._bar.set_postfix_str(f"{progress.value:.6g}", refresh=False)
        self._bar.update(progress.done - self._bar.n)
        return False

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


def _bar() -> Silent:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Silent()
    return Bar(tqdm)


def reporter(progress: Union[bool, None, Callable[[ProgressReport], object]]) -> Silent:
    """True: a bar, with tqdm; None: one on a terminal; False: nothing; a function: it is called."""
    if callable(progress):
        return Function(progress)
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    return _bar() if progress else Silent()
