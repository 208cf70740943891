"""Every figure in a table of the page on ingredients is a mean of trainings in results/ablation."""

import json
import re
from collections import defaultdict
from statistics import mean

import pytest
from snippets import ROOT

PAGE = ROOT / "docs" / "ingredients.md"
STORE = ROOT / "results" / "ablation"
COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}

pytestmark = pytest.mark.skipif(not STORE.is_dir(), reason="only the repository has the results")


def tables():
    """Return the heads and the rows of every table, the overview first."""
    for text in re.findall(r"(?:^\|.*\n)+", PAGE.read_text(), flags=re.MULTILINE):
        heads, _, *rows = ([c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines())
        yield heads, rows


OVERVIEW, *TABLES = tables()


def dataset_of(heads):
    return re.match(r"[\w-]+", heads[0])[0]


def stored(dataset):
    """Return the trainings of every configuration, by fold."""
    found = defaultdict(dict)
    for run in json.loads((STORE / f"{dataset}.json").read_text())["runs"]:
        key = json.dumps(run["settings"], sort_keys=True), run.get("refit", False), run["seed"]
        found[key][run["fold"]] = run
    return found.values()


def figures(heads):
    """Return what rows of a table could say, a tuple of texts for every configuration."""
    count = re.search(r"; (\w+) (?:folds?|splits?)$", heads[0])
    folds = COUNTS[count[1]] if count else 3
    for runs in stored(dataset_of(heads)):
        if heads[1].startswith("split"):
            splits = [int(head.split()[1]) for head in heads[1:]]
            yield tuple(f"{100 * runs[s]['accuracy']:.1f}" if s in runs else "" for s in splits)
        elif set(range(folds)) <= set(runs):
            accuracy, loss = (mean(runs[f][k] for f in range(folds)) for k in ("accuracy", "loss"))
            yield (f"{100 * accuracy:.1f}", f"{loss:.3f}")[: len(heads) - 1]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: dataset_of(table[0]))
def test_figures_are_means_of_stored_trainings(table):
    heads, rows = table
    known = set(figures(heads))
    for name, *cells in rows:
        shown = tuple(cell.strip("*") for cell in cells)
        assert shown in known, f"{name}: {shown}"


def test_bold_is_the_best_of_a_column():
    for heads, rows in TABLES:
        for column, head in enumerate(heads[1:], 1):
            cells = [row[column] for row in rows if row[column]]
            best = (min if head == "loss" else max)(float(cell.strip("*")) for cell in cells)
            bold = {float(cell.strip("*")) for cell in cells if cell.startswith("*")}
            assert bold == {best}, heads[0]


def test_the_overview_compares_figures_of_one_table():
    shown = defaultdict(list)
    for heads, rows in TABLES:
        shown[dataset_of(heads)].append({cell.strip("*") for row in rows for cell in row[1:]})
    compared = 0
    for ingredient, _, changes in OVERVIEW[1]:
        dataset = None
        for change in re.split(", |; | and ", changes):
            dataset = next((name for name in shown if name in change), dataset)
            before, after = re.search(r"([\d.]+) → ([\d.]+)", change).groups()
            assert any({before, after} <= table for table in shown[dataset]), (ingredient, dataset)
            compared += 1
    assert compared > 30
