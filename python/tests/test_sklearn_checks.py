"""
Every check that scikit-learn has for estimators; none is expected to fail. Those that go through the same again with
read-only memory and other types take half of the time and run with --all alone.
"""

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from thiele import GPClassifier, GPRegressor  # noqa: E402


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([GPRegressor(), GPClassifier()])
def test_scikit_learn(estimator, check, request):
    again = any(value is not None for value in getattr(check, "keywords", {}).values())
    if again and not request.config.getoption("--all"):
        pytest.skip("runs with --all")
    check(estimator)
