"""All of scikit-learn's own checks, on small budgets; what people do with the estimators: test_shells.py."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from isthmus import BottleneckAutoencoder, BottleneckClassifier, BottleneckRegressor

SMALL: dict[str, Any] = {"ridge": 3e-3, "starts": 1, "evaluations": 40, "effort": "quick"}
ESTIMATORS = [BottleneckRegressor(**SMALL), BottleneckClassifier(**SMALL), BottleneckAutoencoder(**SMALL)]
EXCEPTIONS = {
    "check_sample_weight_equivalence_on_dense_data": "repeated rows fall on both sides of the held-out split and weigh "
    "in the standardisation; that weights act like repeated rows on a given split: tests/discovery/test_weights.py",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")  # the checks fit fewer than 20 rows
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _estimator: EXCEPTIONS)
def test_the_checks_of_scikit_learn_pass(estimator: object, check: Callable[[object], None]) -> None:
    check(estimator)
