"""The stored results: the README's tables are made of them, and they can be made again."""

import json
import re

import pytest
from snippets import ROOT

from kergnn.cli import main
from kergnn.evaluation import ResultStore
from kergnn.evaluation.reproduce import stored_trial
from kergnn.evaluation.results import stored_results

_TABLE = re.compile(r"<!-- kergnn table (?P<options>.*?) -->\n(?P<text>.*?)<!-- end -->", re.DOTALL)


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="only the repository has the results")
def test_the_tables_of_the_readme_are_those_of_the_store(capsys):
    (found,) = _TABLE.finditer((ROOT / "README.md").read_text())
    options = [*found["options"].split(), "--format", "markdown", "--store", str(ROOT / "results")]
    assert main(["table", *options]) == 0
    assert found["text"].strip() == capsys.readouterr().out.strip()


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="only the repository has the results")
def test_every_training_that_counts_can_be_repeated_from_its_record():
    """Its settings are still known, and are those that it is named by."""
    store = ResultStore(ROOT / "results")
    checked = 0
    for record in (result.record for result in stored_results(store)):
        for key in (key for fold in record["folds"] for key in fold["assessment"]):
            trial = store.trial(record["dataset"], key)
            assert trial is not None, f"{record['dataset']}: {key} is missing"
            assert stored_trial(trial, record["dataset"]).key == key
            checked += 1
    assert checked > 1000


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="only the repository has the results")
def test_what_counts_was_trained_again_and_came_out():
    """What results/reproduced.json tells is of the evaluations in the tables, not of older ones."""
    again = json.loads((ROOT / "results" / "reproduced.json").read_text())
    for result in stored_results(ResultStore(ROOT / "results")):
        found = again[f"{result.dataset}, {result.model}"]
        done = {str(fold["fold"]) for fold in result.record["folds"] if fold["status"] == "done"}
        assert found["evaluation"] == result.record["key"], (result.dataset, result.model)
        assert found["folds"], (result.dataset, result.model)
        assert found["folds"].keys() <= done, (result.dataset, result.model)
        assert all(fold["equal"] for fold in found["folds"].values())
