"""What the estimators share: parameters from the table of options, checks of X, and the way to the model."""

from __future__ import annotations

import inspect
import numbers
from typing import TYPE_CHECKING, Any, Optional, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._sklearn import validate_data
from .fitting import fit
from .model import Model
from .options import describe_options, options
from .table import Table

Array = NDArray[np.float64]

#: Options that make no sense for an estimator: the target is y, weights are those of fit, and there is no file for
#: snapshots.
_NOT_FOR_ESTIMATORS = {"target", "weights", "snapshot"}
_OWN = {"random_state": 0, "n_jobs": None, "device": None, "progress": False}
_OWN_DOCS = """\
random_state : int, RandomState or None, default 0
    The seed of every random draw.
n_jobs : int or None, default None
    Threads. None and -1: one per processor, or one in a worker process of joblib.
device : str or None, default None
    "cpu", "cuda" or "cuda:1". None: a card where there is one and it is quicker.
progress : bool or callable, default False
    As in ``thiele.fit``.
"""
#: Methods whose models are their training rows: few enough to be kept here, too.
_MADE_OF_ROWS = {"exact", "dense"}
E = TypeVar("E")


def with_options(*without: str) -> Any:
    """Gives a class of estimators its parameters, their defaults and their documentation."""

    def decorate(cls: type[E]) -> type[E]:
        table = {name: o for name, o in options().items() if name not in _NOT_FOR_ESTIMATORS.union(without)}
        defaults = {**{name: option.default for name, option in table.items()}, **_OWN}

        def __init__(self: Any, **given: Any) -> None:
            for name in given:
                if name not in defaults:
                    raise TypeError(f"{cls.__name__} has no parameter '{name}'")
            for name, default in defaults.items():
                setattr(self, name, given.get(name, default))

        keyword = inspect.Parameter.KEYWORD_ONLY
        first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        listed = [inspect.Parameter(name, keyword, default=default) for name, default in defaults.items()]
        __init__.__signature__ = inspect.Signature([first, *listed])  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[method-assign,misc]
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\nParameters\n----------\n" + _OWN_DOCS
        cls.__doc__ += describe_options(list(table))
        cls._options = tuple(table)  # type: ignore[attr-defined]
        return cls

    return decorate


def is_frame(X: Any) -> bool:
    """Whether a table has columns that are not numbers: then the library reads them by name."""
    types = getattr(X, "dtypes", None)
    if types is None or not hasattr(X, "columns"):
        return False
    return any(getattr(kind, "kind", "O") not in "iufb" for kind in types)


def has_repeats(X: Any, y: NDArray[Any]) -> bool:
    """Whether two rows are equal, targets and all: such rows are merged. Sums of bits tell which are worth a look."""
    if not isinstance(X, np.ndarray):
        columns = {str(name): X[name] for name in X.columns}
        return bool(_codes(columns, y).duplicated().any()) if hasattr(X, "duplicated") else False
    numbers = np.column_stack([X, y if y.dtype.kind == "f" else np.unique(y, return_inverse=True)[1]])
    numbers += 0.0  # one zero
    odd = np.random.default_rng(0).integers(1, 2**63, numbers.shape[1], dtype=np.uint64) | np.uint64(1)
    sums = (numbers.view(np.uint64) * odd).sum(axis=1)
    return len(np.unique(sums)) < len(sums)


def _codes(columns: dict[str, Any], y: NDArray[Any]) -> Any:
    import pandas as pd

    targets = y if y.ndim > 1 else y[:, None]
    return pd.DataFrame({**columns, **{f"target {i}": targets[:, i] for i in range(targets.shape[1])}})


class GPEstimator(BaseEstimator):
    """The common part; see GPRegressor and GPClassifier."""

    _options: tuple[str, ...]
    _seen: Optional[tuple[Any, NDArray[Any], Optional[Array]]]
    model_: Model

    if TYPE_CHECKING:

        def __init__(self, **options: Any) -> None: ...

    # --- checks ------------------------------------------------------------------------------------------------------

    def _check_rows(self, X: Any, reset: bool) -> Any:
        """X as numbers, or as it is where the library is to read its columns."""
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        finite: Any = "allow-nan" if self.drop_missing else True
        return validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite=finite, ensure_min_samples=2 if reset else 1
        )

    def _table(self, X: Any, extra: Optional[dict[str, Any]] = None) -> Table:
        """X and further columns by their names in the model."""
        if is_frame(X):
            columns = {str(name): X[name] for name in X.columns}
        else:
            columns = {name: X[:, i] for i, name in enumerate(self._names())}
        return Table({**columns, **(extra or {})})

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [str(name) for name in names] if names is not None else [f"x{i + 1}" for i in range(self.n_features_in_)]

    def _name_beside_inputs(self, name: str) -> str:
        taken = set(self._names())
        while name in taken:
            name += "_"
        return name

    # --- learning ----------------------------------------------------------------------------------------------------

    def _seed(self) -> int:
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _threads(self) -> Optional[int]:
        return None if self.n_jobs is None or self.n_jobs == -1 else self.n_jobs

    def _check_weights(self, X: Any, sample_weight: Any) -> Optional[Array]:
        """One for each row; the library says which of them cannot be."""
        if sample_weight is None:
            return None
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.ndim == 0:
            return np.full(len(X), float(weights))
        if weights.ndim != 1:
            raise ValueError("Sample weights must be 1D array or scalar")
        if len(weights) != len(X):
            raise ValueError(f"there are {len(weights)} sample weights for {len(X)} rows")
        return weights

    def _weigh(self, X: Any, y: NDArray[Any], weights: Optional[Array], table: dict[str, Any]) -> dict[str, Any]:
        """The option for a column of weights, which joins the table: where rows have them, or are repeated."""
        if weights is None and not has_repeats(X, y):
            return {}
        name = self._name_beside_inputs("sample_weight")
        table[name] = np.ones(len(y)) if weights is None else weights
        return {"weights": name}

    def _learn(self, table: Table, target: list[str], **instead: Any) -> None:
        values = {name: getattr(self, name) for name in self._options} | instead
        own = {"threads": self._threads(), "device": self.device, "progress": self.progress}
        model = fit(table, target, seed=self._seed(), **own, **values)
        self._take(model)

    def _update(self, table: Table) -> None:
        self._take(self.model_.update(table, seed=self._seed(), threads=self._threads(), progress=self.progress))

    def _take(self, model: Model) -> None:
        about = model.describe()
        self.model_ = model
        self.kernel_ = about["kernel"]
        self.method_ = about["method"]
        self.parameters_ = model.parameters
        self.stop_ = model.stop

    def _compactly(self) -> dict[str, Any]:
        """What partial_fit asks of a fit: a model that can be updated, where the table is not small."""
        return {"compact": True} if self.method == "auto" else {}

    def _keep(self, X: Any, y: NDArray[Any], weights: Optional[Array]) -> None:
        """Rows for partial_fit, of models that are made of them and can't be updated otherwise."""
        made = self.method_ in _MADE_OF_ROWS and hasattr(X, "copy")
        self._seen = (X.copy(), y.copy(), None if weights is None else weights.copy()) if made else None

    def _with_seen(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any], Optional[Array]]:
        """All rows so far and these, which count once each."""
        old, labels, weights = self._seen or (X[:0], y[:0], None)
        if weights is not None:
            weights = np.concatenate([weights, np.ones(len(y))])
        if isinstance(X, np.ndarray):
            rows: Any = np.concatenate([old, X])
        else:
            import pandas as pd

            rows = pd.concat([old, X], ignore_index=True)
        return rows, np.concatenate([labels, y]), weights

    # --- predicting --------------------------------------------------------------------------------------------------

    def _numbers(self, X: Any) -> Optional[Array]:
        """The model's inputs as numbers, a column each; None where it needs more than these."""
        if is_frame(X) or self.categorical or self.exposure or self.partition:
            return None
        names = self._names()
        places = [names.index(name) for name in self.model_.inputs]
        return X if places == list(range(X.shape[1])) else X[:, places]

    def _ready(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        return self._check_rows(X, reset=False)
