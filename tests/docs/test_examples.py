"""Examples are short; the notebook's cells run one after the other.

The scripts themselves are run by ``.ci/run``.
"""

import ast
import json

import pytest
from snippets import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_script_is_short_and_says_what_it_does(path):
    text = path.read_text()
    assert text.count("\n") <= 60
    assert ast.get_docstring(ast.parse(text))
    assert f"`{path.name}`" in (ROOT / "docs/guide/examples.md").read_text()


@pytest.mark.filterwarnings("ignore:graphs have attributes of edges")  # the bonds of MUTAG
def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "examples/tour.ipynb").read_text())
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    assert all(not c["outputs"] for c in notebook["cells"] if c["cell_type"] == "code")
    names = {}
    for number, source in enumerate(cells):
        exec(compile(source, f"tour.ipynb, cell {number}", "exec"), names)
    assert names["clf"].score(names["test"], names["y_test"]) > 0.6
