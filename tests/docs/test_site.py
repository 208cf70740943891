"""What the site makes of docstrings, formulas and commands; needs ``pip install '.[docs]'``."""

import sys

import pytest
from snippets import ROOT

pytest.importorskip("mkdocs", reason="the documentation tools are not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
sys.path.insert(0, str(ROOT / "docs"))


@pytest.mark.parametrize(
    ("rest", "markdown"),
    [
        ("a :math:`G_v` b", "a $G_v$ b"),
        ("x\n\n.. math::\n    a = b\n    + c\n\ny", "x\n\n\n$$\na = b\n+ c\n$$\n\n\ny"),
        ("  .. math:: a = b", "\n  $$\n  a = b\n  $$"),
        ('`"A title"\n<https://example.org>`_: x', '["A title"](https://example.org): x'),
        ("so::\n\n    code()", "so:\n\n    code()"),
        (
            "see :class:`~kergnn.EgoGraphs`",
            'see <autoref identifier="kergnn.EgoGraphs" optional><code>EgoGraphs</code></autoref>',
        ),
    ],
)
def test_docstrings_become_markdown(rest, markdown):
    import docstrings

    assert docstrings.to_markdown(rest) == markdown


def test_formulas_become_mathml():
    import hooks

    html = r'<p><span class="arithmatex">\(a &lt; K_p\)</span></p>'
    made = hooks.on_page_content(html, page=None)
    assert "<msub>" in made
    assert "arithmatex" in made
    assert r"\(" not in made
    with pytest.raises(ValueError, match="nosuchthing"):
        hooks.math(r"\nosuchthing{a}", block=False)


def test_the_command_line_page_shows_every_command():
    import hooks

    from kergnn.cli.app import app

    page = hooks.on_page_markdown((ROOT / "docs/cli.md").read_text())
    for command in app.registered_commands:
        assert f"## kergnn {command.callback.__name__}\n" in page
    assert "--max-nodes" in page


def test_the_page_of_results_is_written_from_the_store():
    import hooks

    page = hooks.on_page_markdown((ROOT / "docs/results.md").read_text())
    assert "<!-- kergnn table" not in page
    assert "| KerGNN-1 | published |" in page
    assert "| kergnn | measured |" in page
