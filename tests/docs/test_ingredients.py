"""Every figure of the page on ingredients is a mean of trainings in results/ablation."""

import json
import re
from collections import defaultdict
from statistics import mean

import pytest
from snippets import ROOT

PAGE = ROOT / "docs" / "ingredients.md"
STORE = ROOT / "results" / "ablation"
COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}


def tables():
    """Return the set, the number of folds, the heads of columns and the rows of every table."""
    for text in re.findall(r"(?:^\|.*\n)+", PAGE.read_text(), flags=re.MULTILINE):
        heads, _, *rows = ([c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines())
        dataset = re.match(r"[\w-]+", heads[0])[0]
        if (STORE / f"{dataset}.json").exists():
            count = re.search(r"; (\w+) (?:folds?|splits?)$", heads[0])
            yield dataset, COUNTS[count[1]] if count else 3, heads[1:], rows


def stored(dataset):
    """Return the trainings of every configuration, by fold."""
    found = defaultdict(dict)
    for run in json.loads((STORE / f"{dataset}.json").read_text())["runs"]:
        key = json.dumps(run["settings"], sort_keys=True), run.get("refit", False)
        found[key][run["fold"]] = run
    return found.values()


def figures(dataset, folds, heads):
    """Return what rows of a table could say, a tuple of texts for every configuration."""
    for runs in stored(dataset):
        if heads[0].startswith("split"):
            splits = [int(head.split()[1]) for head in heads]
            yield tuple(f"{100 * runs[s]['accuracy']:.1f}" if s in runs else "" for s in splits)
        elif set(range(folds)) <= set(runs):
            accuracy, loss = (mean(runs[f][k] for f in range(folds)) for k in ("accuracy", "loss"))
            yield (f"{100 * accuracy:.1f}", f"{loss:.3f}")[: len(heads)]


@pytest.mark.skipif(not STORE.is_dir(), reason="only the repository has the results")
@pytest.mark.parametrize("table", list(tables()), ids=lambda table: table[0])
def test_figures_are_means_of_stored_trainings(table):
    dataset, folds, heads, rows = table
    known = set(figures(dataset, folds, heads))
    for name, *cells in rows:
        shown = tuple(cell.strip("*") for cell in cells)
        assert shown in known, f"{name}: {shown}"
