"""The README's tables are what `kergnn table` makes of the stored results."""

import re

import pytest
from snippets import ROOT

from kergnn.cli import main

_TABLE = re.compile(r"<!-- kergnn table (?P<options>.*?) -->\n(?P<text>.*?)<!-- end -->", re.DOTALL)


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="only the repository has the results")
def test_the_tables_of_the_readme_are_those_of_the_store(capsys):
    (found,) = _TABLE.finditer((ROOT / "README.md").read_text())
    options = [*found["options"].split(), "--format", "markdown", "--store", str(ROOT / "results")]
    assert main(["table", *options]) == 0
    assert found["text"].strip() == capsys.readouterr().out.strip()
