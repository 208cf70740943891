"""Strict evaluation: nested cross-validation that can be killed, continued, shared and trusted."""

from kergnn.evaluation.executors import EXECUTORS, Executor, Limits, make_executor
from kergnn.evaluation.protocol import Plan, make_plan
from kergnn.evaluation.run import Status, evaluate
from kergnn.evaluation.search import SEARCHES, SearchSpace, default_grid, default_space
from kergnn.evaluation.store import ResultStore
from kergnn.evaluation.trial import Trial, run_trial

__all__ = [
    "EXECUTORS",
    "SEARCHES",
    "Executor",
    "Limits",
    "Plan",
    "ResultStore",
    "SearchSpace",
    "Status",
    "Trial",
    "default_grid",
    "default_space",
    "evaluate",
    "make_executor",
    "make_plan",
    "run_trial",
]
