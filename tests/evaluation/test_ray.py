"""Runs on a real local cluster where Ray is installed: ``pip install '.[ray]'``."""

import warnings

import pytest

from kergnn.config import ConfigError
from kergnn.evaluation import ResultStore, evaluate, make_executor

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


def test_ray_gives_the_same_records_as_one_process(small_plan, tmp_path, contents):
    plan = small_plan(learning_rate=[0.01, 1e30], num_layers=1)
    for name, workers in (("serial", 1), ("ray", 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record = evaluate(plan, ResultStore(tmp_path / name), make_executor(name, workers))
        assert (record["folds_done"], record["trials_failed"]) == (2, 2)
    ours, theirs = contents(tmp_path / "serial"), contents(tmp_path / "ray")
    for records in (ours, theirs):
        for record in records.values():
            record.pop("traceback", None)  # of another file
    assert ours == theirs


def test_an_address_without_a_cluster_is_refused_at_once():
    with (
        pytest.raises(ConfigError, match=r"no Ray cluster at 127\.0\.0\.1:1: Connection refused"),
        make_executor("ray", 1, ray_address="127.0.0.1:1"),
    ):
        pass
