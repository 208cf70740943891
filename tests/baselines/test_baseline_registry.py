import inspect
import subprocess
import sys

import pytest

from kergnn.baselines import baseline_names, get_baseline

PAPER = {
    "graph": "sp pk wl gntk dgcnn diffpool ecc gin graphsage rwgnn gckn 123gnn ppgn",
    "node": "gcn gat geomgcn appnp jknet gcnii",
}


def test_every_system_of_the_tables_is_there():
    for task, names in PAPER.items():
        assert set(names.split()) <= set(baseline_names(task))
    assert set(baseline_names()) == {*baseline_names("graph"), *baseline_names("node")}


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"model is 'gim': it must be one of .*'gin'"):
        get_baseline("gim")


def test_the_list_of_systems_needs_no_torch():
    code = "import sys, kergnn.baselines; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", baseline_names())
def test_a_docstring_has_formula_and_arguments(name):
    text = inspect.getdoc(get_baseline(name).load())
    for part in ("math::", "Args:") if name != "gckn-unsupervised" else ("Args:",):
        assert part in text
