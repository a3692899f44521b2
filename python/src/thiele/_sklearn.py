"""What scikit-learn 1.6 named anew, by those names on 1.4 and 1.5 too."""

from __future__ import annotations

from typing import Any

from sklearn.utils import validation

if hasattr(validation, "validate_data"):
    check_array, validate_data = validation.check_array, validation.validate_data
else:

    def check_array(array: Any, **options: Any) -> Any:
        return validation.check_array(array, **_renamed(options))

    def validate_data(estimator: Any, X: Any, *, reset: bool, skip_check_array: bool = False, **options: Any) -> Any:
        if not skip_check_array:
            return estimator._validate_data(X, reset=reset, **_renamed(options))
        estimator._check_feature_names(X, reset=reset)
        estimator._check_n_features(X, reset=reset)
        return X

    def _renamed(options: dict[str, Any]) -> dict[str, Any]:
        return {"force_all_finite" if name == "ensure_all_finite" else name: value for name, value in options.items()}


__all__ = ["check_array", "validate_data"]
