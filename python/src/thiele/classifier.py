"""Gaussian-process classification with scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ._estimator import GPEstimator, with_options
from .options import join_list

Array = NDArray[np.float64]


@with_options("noise")
class GPClassifier(ClassifierMixin, GPEstimator):
    """
    Gaussian-process classification into two or more classes, with any labels. Data frames may have columns of texts and
    categories.

    Attributes
    ----------
    classes_ : array
        The labels, sorted; columns of predict_proba.
    model_ : thiele.Model
        What was fitted; it can be saved for the command and the C library.
    kernel_, method_, stop_ : str
        The kernel and the method that were used, and why the fit ended.
    parameters_ : dict
        What was learned, in the units of the data.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    def fit(self, X: Any, y: ArrayLike, sample_weight: Optional[ArrayLike] = None) -> GPClassifier:
        """
        Fits the model. A row of weight 2 counts as that row twice, one of weight 0 not at all: its likelihood is taken
        to that power.
        """
        X = self._check_rows(X, reset=True)
        labels = self._check_labels(X, y)
        weights = self._check_weights(X, sample_weight)
        known = np.unique(labels)
        if weights is not None and np.any(weights):  # rows of weight 0 are none, and so are classes of theirs alone
            known = np.unique(labels[weights != 0.0])
            labels = np.where(weights != 0.0, labels, known[0])
        return self._fit(X, labels, known, weights, {})

    def partial_fit(self, X: Any, y: ArrayLike, classes: Optional[ArrayLike] = None) -> GPClassifier:
        """
        Goes on learning from further rows, as that of GPRegressor. The first call needs all labels: in y, or listed in
        ``classes``.
        """
        if not hasattr(self, "model_"):
            X = self._check_rows(X, reset=True)
            labels = self._check_labels(X, y)
            known = np.unique(labels if classes is None else np.asarray(classes))
            return self._fit(X, labels, known, None, self._compactly())
        X = self._check_rows(X, reset=False)
        labels = self._check_labels(X, y)
        if self._seen is not None:
            self._column(labels)  # refuses strange ones
            X, labels, weights = self._with_seen(X, labels)
            return self._fit(X, labels, self.classes_, weights, self._compactly())
        self._update(self._table(X, {self.model_.targets[0]: self._column(labels)}))
        return self

    def _check_labels(self, X: Any, y: Any) -> NDArray[Any]:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        check_consistent_length(X, labels)
        return labels

    def _fit(
        self,
        X: Any,
        labels: NDArray[Any],
        known: NDArray[Any],
        weights: Optional[Array],
        instead: dict[str, Any],
    ) -> GPClassifier:
        if len(known) < 2:
            raise ValueError(
                f"a classifier needs at least two classes, and all rows are of class {known.tolist()[0]!r}"
            )
        self.classes_ = known
        self._texts = _names_of(known)
        if self.likelihood == "auto":
            instead["likelihood"] = "bernoulli" if len(known) == 2 else "softmax"
        if self.classes is None:
            instead["classes"] = join_list(self._texts)
        name = self._name_beside_inputs("y")
        extra: dict[str, Any] = {name: self._column(labels)}
        instead |= self._weigh(X, labels, weights, extra)
        self._learn(self._table(X, extra), [name], **instead)
        keys = [_key(text) for text in self.model_.classes]
        self._order = [keys.index(_key(text)) for text in self._texts]
        self._keep(X, labels, weights)
        return self

    def _column(self, labels: NDArray[Any]) -> list[str]:
        """Labels as the model's texts."""
        places = np.searchsorted(self.classes_, labels)
        places = np.minimum(places, len(self.classes_) - 1)
        strange = self.classes_[places] != labels
        if np.any(strange):
            raise ValueError(f"y has the label {labels[strange].tolist()[0]!r}, which the first fit did not know")
        texts = np.array(self._texts, dtype=object)
        return texts[places].tolist()

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, (rows, classes), in the order of classes_."""
        X = self._ready(X)
        numbers = self._numbers(X)
        if numbers is not None:
            probability = self.model_.predict_probabilities(numbers, threads=self._threads())
        else:
            made = self.model_.predict(self._table(X), threads=self._threads())
            probability = np.asarray(made.probability)
        return probability[:, self._order]

    def predict_log_proba(self, X: Any) -> Array:
        """Their logs."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each row."""
        probability = self.predict_proba(X)
        return self.classes_[np.argmax(probability, axis=1)]

    def score_samples(self, X: Any, y: Optional[ArrayLike] = None) -> Array:
        """The log probability of each row's label; without y that of the most probable one."""
        logs = self.predict_log_proba(X)
        if y is None:
            return logs.max(axis=1)
        return logs[np.arange(len(logs)), np.searchsorted(self.classes_, column_or_1d(y))]


def _key(text: str) -> Any:
    """What tells two labels apart in the library: numbers go by their value."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _names_of(classes: NDArray[Any]) -> Sequence[str]:
    """Texts of labels in the model: as they print, or their places where these could not be told apart."""
    texts = [str(label) for label in classes.tolist()]
    if len({_key(text) for text in texts}) < len(texts) or not all(text.strip() for text in texts):
        return [str(i) for i in range(len(texts))]
    return texts
