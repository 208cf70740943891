"""scikit-learn's own checks, on the classifier as it is and with tables turned into graphs.

The checks give tables of features. ``KerGNNClassifier`` says in its tags that it takes none, so
scikit-learn would skip almost all of them; here they are run in spite of that. What fails must be
in the list below, and all that is in the list must fail.
"""

import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data

from kergnn import KerGNNClassifier, RandomWalkKernel
from kergnn.data.records import GraphRecord

REFUSED = "fits a table of features, which is refused with a ValueError"
NOT_FOR_GRAPHS = {
    "check_fit_score_takes_y": REFUSED,
    "check_estimators_overwrite_params": REFUSED,
    "check_dont_overwrite_parameters": REFUSED,
    "check_estimators_fit_returns_self": REFUSED,
    "check_readonly_memmap_input": REFUSED,
    "check_n_features_in_after_fitting": REFUSED,
    "check_positive_only_tag_during_fit": REFUSED,
    "check_estimators_dtypes": REFUSED,
    "check_dtype_object": REFUSED,
    "check_pipeline_consistency": REFUSED,
    "check_estimators_pickle": REFUSED,
    "check_f_contiguous_array_estimator": REFUSED,
    "check_classifier_data_not_an_array": REFUSED,
    "check_classifiers_classes": REFUSED,
    "check_classifiers_train": REFUSED,
    "check_supervised_y_2d": REFUSED,
    "check_transformer_data_not_an_array": REFUSED,
    "check_transformer_general": REFUSED,
    "check_methods_sample_order_invariance": REFUSED,
    "check_methods_subset_invariance": REFUSED,
    "check_dict_unchanged": REFUSED,
    "check_fit_idempotent": REFUSED,
    "check_fit_check_is_fitted": REFUSED,
    "check_n_features_in": REFUSED,
    "check_fit2d_predict1d": REFUSED,
    "check_estimators_empty_data_messages": "wants the number of features in the refusal",
    "check_estimators_nan_inf": "wants the word 'NaN' in the refusal of a table",
    "check_fit2d_1feature": "wants the number of features in the refusal of a table",
}


SINGLE_PRECISION = {
    "check_methods_sample_order_invariance": "asks for 1e-7 where single precision has 1e-6",
}


class TakesTables:
    """Tags that let scikit-learn run its checks."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class RowsAsGraphs(TakesTables):
    """Every row of a table becomes a graph of one node with the row as its attributes."""

    def _read(self, X, as_before):
        X = validate_data(self, X, reset=not as_before, dtype=np.float64)
        return [GraphRecord(1, [], {}, {"row": row[None]}) for row in X]


class SmallClassifier(KerGNNClassifier):
    def __init__(
        self, hidden_channels=4, num_layers=1, epochs=6, learning_rate=0.1, random_state=0
    ):
        super().__init__(
            hidden_channels=hidden_channels,
            num_layers=num_layers,
            epochs=epochs,
            learning_rate=learning_rate,
            random_state=random_state,
        )


class TableClassifier(TakesTables, SmallClassifier):
    pass


class RowClassifier(RowsAsGraphs, SmallClassifier):
    pass


class RowKernel(RowsAsGraphs, RandomWalkKernel):
    pass


def outcome(estimator):
    """Run all checks and return the names of those that passed, failed and were skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    return [
        {r["check_name"]: r["exception"] for r in results if r["status"] == status}
        for status in ("passed", "failed", "skipped")
    ]


def test_checks_that_cannot_apply_to_graphs():
    passed, failed, _ = outcome(TableClassifier())
    assert not {k: v for k, v in failed.items() if k not in NOT_FOR_GRAPHS}
    assert not set(passed) & set(NOT_FOR_GRAPHS), "is listed, but passes"
    assert len(passed) > 20
    for name, error in failed.items():
        if NOT_FOR_GRAPHS[name] == REFUSED:
            assert isinstance(error, ValueError | AssertionError)


def test_all_checks_pass_where_rows_are_graphs():
    passed, failed, skipped = outcome(RowClassifier())
    assert not {k: v for k, v in failed.items() if k not in SINGLE_PRECISION}
    assert set(NOT_FOR_GRAPHS) <= {*passed, *failed, *skipped}  # they are run here


def test_all_checks_of_the_kernel_pass_where_rows_are_graphs():
    passed, failed, _ = outcome(RowKernel())
    assert not failed
    assert len(passed) > 40


@pytest.mark.parametrize("estimator", [KerGNNClassifier(), RandomWalkKernel()])
def test_tags_say_that_tables_are_not_taken(estimator):
    assert not estimator.__sklearn_tags__().input_tags.two_d_array
