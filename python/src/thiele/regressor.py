"""Gaussian-process regression with scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_consistent_length, check_random_state

from ._estimator import GPEstimator, with_options
from ._sklearn import check_array
from .errors import UnsupportedError

Array = NDArray[np.float64]


@with_options("classes")
class GPRegressor(RegressorMixin, GPEstimator):
    """
    Gaussian-process regression of numbers: heavy-tailed or varying noise, counts, positive values and shares by
    ``likelihood``, several targets together. Data frames may have columns of texts and categories.

    Attributes
    ----------
    model_ : thiele.Model
        What was fitted; it can be saved for the command and the C library.
    kernel_, method_, stop_ : str
        The kernel and the method that were used, and why the fit ended.
    parameters_ : dict
        What was learned, in the units of the data.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    def fit(self, X: Any, y: ArrayLike, sample_weight: Optional[ArrayLike] = None) -> GPRegressor:
        """
        Fits the model; of several targets y has a column each, with NaN where one is missing. A row of weight 2 counts
        as that row twice, one of weight 0 not at all: its likelihood is taken to that power.
        """
        X = self._check_rows(X, reset=True)
        values = self._check_targets(X, y)
        return self._fit(X, values, self._check_weights(X, sample_weight), {})

    def partial_fit(self, X: Any, y: ArrayLike) -> GPRegressor:
        """
        Goes on learning from further rows. Models of inducing inputs, which ``compact`` asks for and which larger
        tables get by themselves here, are updated; those made of their rows (exact, dense) are fitted again to all of
        them. Where another method cannot go on, the error says what to fit instead.
        """
        if not hasattr(self, "model_"):
            X = self._check_rows(X, reset=True)
            return self._fit(X, self._check_targets(X, y), None, self._compactly())
        X = self._check_rows(X, reset=False)
        values = self._check_targets(X, y)
        if self._seen is not None:
            X, values, weights = self._with_seen(X, values)
            return self._fit(X, values, weights, self._compactly())
        self._update(self._table(X, dict(zip(self.model_.targets, values.T))))
        return self

    def _fit(self, X: Any, values: Array, weights: Optional[Array], instead: dict[str, Any]) -> GPRegressor:
        count = values.shape[1]
        names = [self._name_beside_inputs("y" if count == 1 else f"y{i + 1}") for i in range(count)]
        if self.likelihood == "auto" and self.noise == "auto" and len(np.unique(values)) <= 2:
            instead["likelihood"] = "gaussian"  # two values are not labels here
        extra = dict(zip(names, values.T))
        instead |= self._weigh(X, values, weights, extra)
        self._learn(self._table(X, extra), names, **instead)
        self._keep(X, values, weights)
        return self

    def _check_targets(self, X: Any, y: Any) -> Array:
        """A column each; whether y had one dimension is remembered."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        values = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
        if values.size == len(values) and np.isnan(values).any():
            check_array(values, ensure_2d=False, input_name="y")  # says so
        check_consistent_length(X, values)
        self._flat = values.ndim == 1
        return values[:, None] if self._flat else values

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, *, latent: bool = False
    ) -> Union[Array, tuple[Array, Array]]:
        """
        Means of observations (latent: of the function, without noise). With return_std standard deviations too, with
        return_cov the covariance of all rows. Without either no variance is computed.
        """
        if return_std and return_cov:
            raise RuntimeError("predict returns standard deviations or a covariance, not both")
        X = self._ready(X)
        if return_cov:
            return self.model_.predict_joint(self._table(X), latent=latent, threads=self._threads())
        numbers = self._numbers(X)
        if numbers is None or self.model_._parts(latent, np.empty(0), 0):
            mean, variance = self._predict_table(X, latent)
        elif return_std:
            mean, variance = self.model_.predict_rows(numbers, latent=latent, threads=self._threads())
        else:
            mean = self.model_.predict_rows(numbers, latent=latent, variance=False, threads=self._threads())
        return (self._shaped(mean), self._shaped(np.sqrt(variance))) if return_std else self._shaped(mean)

    def _predict_table(self, X: Any, latent: bool) -> tuple[Any, Any]:
        made = self.model_.predict(self._table(X), latent=latent, threads=self._threads())
        if not made.parts:
            return made.mean, made.variance
        parts = made.parts.values()
        return np.column_stack([_there(p.mean) for p in parts]), np.column_stack([_there(p.variance) for p in parts])

    def _shaped(self, array: Array) -> Array:
        return array[:, None] if array.ndim == 1 and not self._flat else array

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Quantiles of observations, (rows, quantiles), or (rows, targets, quantiles) of several targets."""
        X = self._ready(X)
        made = self.model_.predict(self._table(X), quantiles=quantiles, threads=self._threads())
        if made.parts:
            return np.stack([_there(part.quantiles) for part in made.parts.values()], axis=1)
        return _there(made.quantiles)

    def predict_interval(self, X: Any, level: float = 0.9) -> Array:
        """The central interval that holds an observation with this probability: lower and upper ends in two columns."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, and is {level}")
        return self.predict_quantiles(X, ((1.0 - level) / 2.0, (1.0 + level) / 2.0))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, *, joint: bool = True) -> Array:
        """
        Draws of observations, (rows, n_samples): of all rows jointly, which needs one target with Gaussian noise, or
        (joint=False) of each row by itself, whatever the likelihood.
        """
        X = self._ready(X)
        random = check_random_state(random_state)
        if joint:
            mean, covariance = self.model_.predict_joint(self._table(X), threads=self._threads())
            return random.multivariate_normal(mean, covariance, n_samples, check_valid="ignore").T
        seed = int(random.randint(np.iinfo(np.int32).max))
        made = self.model_.predict(self._table(X), samples=n_samples, seed=seed, threads=self._threads())
        if made.parts:
            return np.stack([_there(part.samples) for part in made.parts.values()], axis=1)
        return _there(made.samples)

    def score_samples(self, X: Any, y: Optional[ArrayLike] = None) -> Array:
        """
        The log predictive density of each row's target, the sum over several. Without y that of the predicted mean:
        high where the model is sure, low far from what it has seen.
        """
        X = self._ready(X)
        values = self._check_targets_again(y) if y is not None else None
        if values is None:
            values = np.asarray(self.predict(X)).reshape(len(X), -1)
        densities = self.model_.log_densities(self._table(X, dict(zip(self.model_.targets, values.T))))
        return densities if densities.ndim == 1 else np.nansum(densities, axis=1)

    def _check_targets_again(self, y: ArrayLike) -> Array:
        values = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
        return values if values.ndim > 1 else values[:, None]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = bool(self.drop_missing)
        return tags

    def _more_tags(self) -> dict[str, bool]:
        """The same for scikit-learn before 1.6."""
        return {"multioutput": True, "allow_nan": bool(self.drop_missing)}


def _there(array: Optional[Array]) -> Array:
    if array is None:
        raise UnsupportedError("this likelihood has none of these")
    return array
