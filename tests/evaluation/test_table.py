import csv
import html.parser
import io
import math
import re
import statistics

import matplotlib
import pytest
from scipy import stats

from kergnn.evaluation import ResultStore
from kergnn.evaluation.results import (
    corrected_t_test,
    fixed_values,
    published_results,
    stored_results,
    summarized,
)
from kergnn.evaluation.sheets import STYLES
from kergnn.evaluation.table import format_table, plot_accuracy

MEASURED = {"seconds_of_all_trainings": 5400.0, "finished": "2026-01-01T00:00:00+00:00"}


def evaluation(dataset="NCI1", model="kergnn", accuracies=(0.8, 0.9), key="a", **changes):
    folds = [
        {
            "fold": i,
            "split_hash": f"split{i}",
            "status": "done",
            "test": {"accuracy": accuracy},
            "config": {"num_layers": 1 + i % 2, "epochs": 200, "features": f"recipe{i // 2}"},
            "failed": {},
        }
        for i, accuracy in enumerate(accuracies)
    ]
    made = {
        "format": 1,
        "key": key * 24,
        "dataset": dataset,
        "fingerprint": "abc",
        "task": "graph",
        "model": model,
        "search": "grid",
        "searched": {"num_layers": [1, 2]},
        "num_configs": 2,
        "repeats": 3,
        "mean": statistics.fmean(accuracies) if accuracies else None,
        "std": statistics.pstdev(accuracies) if accuracies else None,
        "folds_done": len(accuracies),
        "folds_failed": 0,
        "trials_failed": 0,
        "trials_out_of_resources": 0,
        "folds": folds,
        "measured": {**MEASURED, "seconds_per_epoch": 0.2},
    }
    return {**made, **changes}


@pytest.fixture
def store(tmp_path):
    store = ResultStore(tmp_path)
    return lambda *records: [store.add_evaluation(r) for r in records] and stored_results(store)


def test_the_paper_s_tables_are_complete():
    results = published_results()
    graph = [r for r in results if r.task == "graph"]
    node = [r for r in results if r.task == "node"]
    assert len({r.model for r in graph}) == 17
    assert len(graph) == 17 * 8
    assert len(node) == 7 * 4
    assert sum(r.note == "OOR" for r in graph) == 11
    best = {}
    for r in results:
        if r.mean is not None:
            best[r.dataset] = max(best.get(r.dataset, 0), round(100 * r.mean, 2))
    assert best == {
        "DD": 78.9,
        "NCI1": 83.5,
        "PROTEINS": 76.5,
        "ENZYMES": 62.1,
        "IMDB-BINARY": 75.9,
        "IMDB-MULTI": 52.2,
        "REDDIT-BINARY": 91.1,
        "COLLAB": 77.5,
        "Cora": 88.49,
        "Citeseer": 77.99,
        "Pubmed": 90.05,
        "Chameleon": 62.28,
    }


def test_the_corrected_test_by_hand():
    differences = [0.02, 0.01, 0.03, 0.0, 0.04]
    sigma = statistics.stdev(differences)
    t = 0.02 / (sigma * (1 / 5 + 1 / 9) ** 0.5)
    assert corrected_t_test(differences, 1 / 9) == pytest.approx(2 * stats.t.sf(t, 4))
    # Without the correction it is the usual paired test.
    usual = stats.ttest_1samp(differences, 0).pvalue
    assert corrected_t_test(differences, 0) == pytest.approx(usual)
    assert corrected_t_test(differences, 1 / 9) > usual
    assert corrected_t_test([0.0, 0.0], 1 / 9) == 1
    assert math.isnan(corrected_t_test([0.8 - 0.7, 0.9 - 0.8], 1 / 9))


def test_the_opponent_is_the_best_other_model_on_the_same_folds(store):
    mine = evaluation(accuracies=(0.80, 0.90, 0.85))
    weak = evaluation(model="weak", accuracies=(0.5, 0.6, 0.5))
    strong = evaluation(model="strong", accuracies=(0.7, 0.85, 0.8))
    elsewhere = evaluation(model="elsewhere", accuracies=(0.99, 0.99, 0.99))
    for fold in elsewhere["folds"]:
        fold["split_hash"] += "x"
    results = {r.model: r for r in store(mine, weak, strong, elsewhere)}
    comparison = results["kergnn"].comparison
    assert (comparison.model, comparison.folds) == ("strong", 3)
    assert comparison.difference == pytest.approx((0.1 + 0.05 + 0.05) / 3)
    assert comparison.p_value == pytest.approx(corrected_t_test([0.1, 0.05, 0.05], 1 / 9))
    assert results["elsewhere"].comparison is None


def test_a_quick_look_is_no_opponent_beside_whole_results(store):
    whole = evaluation(accuracies=[0.8 + i / 100 for i in range(10)])
    strong = evaluation(model="strong", accuracies=[0.85] * 10)
    look = evaluation(model="look", accuracies=[0.99, 0.98])
    results = {r.model: r for r in store(whole, strong, look)}
    assert results["kergnn"].comparison.model == "strong"
    assert results["kergnn"].comparison.folds == 10


def test_data_that_share_a_name_only_are_two_sets(store):
    mine = evaluation(accuracies=(0.8, 0.9, 0.85))
    other = evaluation(model="gin", accuracies=(0.5, 0.6, 0.5), fingerprint="xyz123456")
    results = {r.model: r for r in store(mine, other)}
    assert results["kergnn"].comparison is None
    assert {r.dataset for r in results.values()} == {"NCI1 abc", "NCI1 xyz123"}


def test_other_values_of_edges_are_another_set_for_who_looks_at_them(store):
    mine = evaluation(accuracies=(0.8, 0.9, 0.85))
    ecc = evaluation(model="ecc", accuracies=(0.5, 0.6, 0.5), fingerprint="abc-123456789")
    results = {r.model: r for r in store(mine, ecc)}
    assert {r.dataset for r in results.values()} == {"NCI1"}
    assert results["kergnn"].comparison.model == "ecc"
    other = evaluation(
        model="ecc", accuracies=(0.7, 0.6, 0.7), fingerprint="abc-xyz123456", key="b"
    )
    names = sorted((r.model, r.dataset) for r in store(other))
    assert names == [("ecc", "NCI1 123456"), ("ecc", "NCI1 xyz123"), ("kergnn", "NCI1")]


def test_a_result_tells_its_features_and_its_time(store):
    text = format_table(store(evaluation(accuracies=[0.6] * 3)))
    assert "recipe0, recipe1" in text
    assert "1.5 h" in text


def test_settings_that_were_fixed_are_told_and_defaults_are_not():
    record = evaluation(accuracies=(0.6, 0.7))
    for fold in record["folds"]:
        fold["config"] |= {"dropout": 0.2, "batch_size": 128, "learning_rate": 0.01 + fold["fold"]}
    assert fixed_values(record) == "batch_size = 128"
    assert fixed_values({**record, "task": "node"}) == "dropout = 0.2, batch_size = 128"


def test_the_summary_has_kergnn_below_the_best_that_was_published_and_measured(store):
    other_folds = evaluation(accuracies=[0.9] * 10, model="pk", key="e")
    for fold in other_folds["folds"]:
        fold["split_hash"] += " drawn"
    measured = store(
        evaluation(accuracies=[0.6] * 10),
        evaluation(accuracies=[0.7] * 10, model="gin", key="b"),
        evaluation(accuracies=[0.8] * 10, model="wl", key="c"),
        evaluation(accuracies=[0.9] * 3, model="sp", key="d"),  # not all of the folds
        other_folds,
    )
    found = summarized([*published_results(), *measured])
    names = ["best of all systems", "best KerGNN", "best competitor", "kergnn"]
    assert list(dict.fromkeys(r.model for r in found)) == names
    best = {(r.model, r.dataset): r.mean for r in found}
    assert best["best of all systems", "NCI1"] == pytest.approx(0.835)
    assert best["best KerGNN", "NCI1"] == pytest.approx(0.828)
    assert best["best of all systems", "Cora"] == pytest.approx(0.8849)
    assert best["best competitor", "NCI1"] == pytest.approx(0.8)
    assert best["kergnn", "NCI1"] == pytest.approx(0.6)
    assert len(found) == 12 + 12 + 2
    text = format_table(found, with_details=False)
    assert "80.0 ± 0.0 (wl)" in text
    assert "NCI1,best competitor,80.00,0.00,10,measured,graph,wl," in format_table(found, "csv")
    assert "selected" not in text


def test_node_splits_have_a_larger_test_part(store):
    mine = evaluation(accuracies=(0.80, 0.90, 0.85), task="node")
    other = evaluation(model="other", accuracies=(0.7, 0.85, 0.8), task="node")
    comparison = store(mine, other)[0].comparison
    assert comparison.p_value == pytest.approx(corrected_t_test([0.1, 0.05, 0.05], 1 / 4))


def test_the_newest_of_equal_evaluations_counts(store):
    new = evaluation(accuracies=[0.6] * 10, key="a")
    new["measured"] = {**MEASURED, "finished": "2026-02-01T00:00:00+00:00"}
    (result,) = store(new, evaluation(accuracies=[0.7] * 10, key="b"))
    assert result.mean == 0.6


def test_of_equal_evaluations_the_last_of_the_store_counts(store):
    (result,) = store(
        evaluation(accuracies=[0.6] * 10, key="a"), evaluation(accuracies=[0.7] * 10, key="b")
    )
    assert result.mean == 0.7


def test_of_several_evaluations_the_most_thorough_counts_not_the_best(store):
    whole = evaluation(accuracies=[0.7] * 10, key="a")
    look = evaluation(accuracies=[0.99], key="b", num_configs=9)
    (result,) = store(whole, look)
    assert result.mean == 0.7
    assert "1 other evaluation in the store" in result.note
    grown = evaluation(accuracies=[0.6] * 10, key="c", num_configs=5)
    (result,) = store(grown)
    assert result.mean == 0.6


def test_evaluations_that_do_not_count_can_be_seen_and_are_called_so(tmp_path):
    store = ResultStore(tmp_path)
    store.add_evaluation(evaluation(accuracies=[0.7] * 10, key="a"))
    store.add_evaluation(evaluation(accuracies=[0.99], key="b"))
    first, other = stored_results(store, every=True)
    assert (first.mean, first.counts) == (0.7, True)
    assert (other.mean, other.counts) == (0.99, False)
    rows = list(csv.DictReader(io.StringIO(format_table([first, other], "csv"))))
    assert [row["counts"] for row in rows] == ["yes", "no"]
    matrix, _, details = format_table([first, other]).partition("Measured here")
    assert "99.0" not in matrix
    assert "99.0" in details
    assert "does not count" in details


def test_a_quick_look_does_not_replace_a_whole_evaluation(store):
    whole = evaluation(accuracies=[0.7] * 10, key="a")
    look = evaluation(accuracies=[0.8] * 10, key="b")
    look["measured"] = {**look["measured"], "finished": "2026-02-01T00:00:00+00:00"}
    for fold in look["folds"]:
        fold["config"]["epochs"] = 5
    (result,) = store(whole, look)
    assert result.mean == 0.7
    assert "2 (grid), 3 repeats, up to 200 epochs" in format_table([result])


def test_what_is_not_shown_is_not_explained(store):
    (result,) = store(evaluation(accuracies=[0.7] * 10))
    assert "Published" not in format_table([result])
    note = "* the best of its column, of one network or kernel and all folds"
    assert note in format_table([result])
    (part,) = store(evaluation(model="part", accuracies=[0.7]))[1:]
    assert "*" not in format_table([part])


def test_csv_has_one_row_for_each_data_set_and_model(store):
    results = [*published_results(), *store(evaluation(accuracies=(0.8, 0.9)))]
    text = format_table(results, "csv")
    assert text.startswith("dataset,model,mean,std,folds,")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 17 * 8 + 7 * 4 + 1
    mine = rows[-1]
    assert (mine["dataset"], mine["model"], mine["source"]) == ("NCI1", "kergnn", "measured")
    assert (mine["mean"], mine["std"], mine["folds"]) == ("85.00", "5.00", "2")
    assert mine["selected"] == "num_layers: 1 (1), 2 (1)"
    assert mine["counts"] == "yes"
    gin = next(r for r in rows if (r["dataset"], r["model"]) == ("NCI1", "GIN"))
    assert (gin["mean"], gin["std"], gin["source"]) == ("80.00", "1.40", "published")
    oor = next(r for r in rows if (r["dataset"], r["model"]) == ("DD", "GNTK"))
    assert (oor["mean"], oor["note"]) == ("", "OOR")


def test_failures_are_in_the_table(store):
    partly = evaluation(accuracies=[0.8] * 9, folds_failed=1, trials_failed=4)
    nothing = evaluation(dataset="DD", accuracies=(), folds_failed=10, trials_failed=20)
    text = format_table(store(partly, nothing))
    assert "80.0 ± 0.0 (9 folds)" in text
    assert "1 fold failed, 4 trials failed" in text
    assert "10 folds failed, 20 trials failed" in text
    (line,) = (line for line in text.splitlines() if line.startswith("DD"))
    assert "failed" in line


def test_runs_that_learned_nothing_are_told_of(store):
    assert "2 runs of one class only" in format_table(store(evaluation(constant_runs=2)))


def test_out_of_resources_is_told_as_in_the_paper(store):
    nothing = evaluation(
        accuracies=(), folds_failed=10, trials_out_of_resources=20, measured={}
    )  # nothing was assessed, so there is nothing that was measured
    text = format_table(store(nothing))
    (row,) = (line for line in text.splitlines() if line.startswith("NCI1 "))
    assert "min" not in row
    assert "OOR" in text
    assert "20 trials out of resources" in text


def test_only_whole_results_are_marked_as_best(store):
    partial = evaluation(accuracies=[0.99] * 3)
    text = format_table([*published_results(), *store(partial)])
    assert "83.5 ± 1.2*" in text
    assert "99.0 ± 0.0 (3 folds)*" not in text
    text = format_table([*published_results(), *store(evaluation(accuracies=[0.9] * 10, key="b"))])
    assert "90.0 ± 0.0*" in text
    assert "83.5 ± 1.2*" not in text


def test_markdown_latex_and_html_are_well_formed(store):
    results = [*published_results(), *store(evaluation(model="a|b_&<c>", accuracies=[0.9] * 10))]
    markdown = format_table(results, "markdown")
    tables = [part.strip() for part in markdown.split("\n\n") if part.startswith("|")]
    columns = [
        {line.replace("\\|", "").count("|") for line in table.splitlines() if line[:1] == "|"}
        for table in tables
    ]
    assert columns == [{11}, {7}, {11}]
    assert "**90.0 ± 0.0**" in markdown
    latex = format_table(results, "latex")
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 3
    assert r"a|b\_\&<c>" in latex
    assert r"\textbf{90.0 $\pm$ 0.0}" in latex
    page = format_table(results, "html")
    assert "a|b_&amp;&lt;c&gt;" in page

    class Checker(html.parser.HTMLParser):
        stack = ()

        def handle_starttag(self, tag, attributes):
            if tag != "meta":
                self.stack = (*self.stack, tag)

        def handle_endtag(self, tag):
            assert self.stack[-1] == tag
            self.stack = self.stack[:-1]

    checker = Checker()
    checker.feed(page)
    assert checker.stack == ()
    assert set(STYLES) == {"text", "markdown", "latex", "html"}


def test_the_plot_shows_measured_results_only(store):
    assert plot_accuracy(published_results()) is None
    picture = plot_accuracy(store(evaluation(), evaluation(dataset="DD")))
    assert picture.startswith(b"<?xml")
    assert len(picture) > 5000


def test_the_plot_names_every_model_and_its_seconds(store):
    """Eleven models: more than there are colours, so that the markers must differ."""
    models = ["gin", "kergnn", *(f"model{i}" for i in range(9))]
    records = [
        evaluation(model=model, measured={**MEASURED, "seconds_per_epoch": 0.04 * (i + 1)})
        for i, model in enumerate(models)
    ]
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        picture = plot_accuracy(store(*records)).decode()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert [text for text in texts if text in models] == sorted(models)
    assert "0.1" in texts
    marks = re.findall(r'<use xlink:href="(#\w+)"', picture.partition("legend_1")[2])
    assert len(set(marks)) == len(models)
