"""Every check that scikit-learn has for estimators. None is expected to fail."""

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from thiele import GPClassifier, GPRegressor  # noqa: E402


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([GPRegressor(), GPClassifier()])
def test_scikit_learn(estimator, check):
    check(estimator)
