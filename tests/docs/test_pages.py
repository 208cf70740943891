"""Every code block of the README and of the documentation runs, or is parsed, as written."""

import pytest
from snippets import PAGES, ROOT, blocks, parse, run_page

from kergnn.kernels import registry

# Commands that these pages rely on; training is kept short.
RUN = {
    "README.md": lambda a: (
        [*a, "--epochs", "1", "--quiet", "--no-report"] if a == ["train", "MUTAG"] else None
    ),
    "docs/guide/data.md": lambda a: [*a, "--epochs", "1", "--quiet", "--no-report"],
    "docs/index.md": lambda a: (
        [*a, "--epochs", "5", "--quiet", "--no-report"] if a[0] == "train" else a
    ),
}


@pytest.fixture(autouse=True)
def _own_folder_and_kernels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_KERNELS", dict(registry._KERNELS))


@pytest.mark.filterwarnings("ignore:.* has node label .*, which the model does not know")
@pytest.mark.filterwarnings("ignore:graphs have attributes of edges")  # the bonds of MUTAG
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_as_written(page):
    names, missing = run_page(page, RUN.get(page))
    if page == "README.md":
        check_readme(names)
    if missing:
        pytest.skip(f"all but what needs {', '.join(missing)} was run")


def check_readme(names):
    """Look at what the README says about its own code."""
    conv, x = names["conv"], names["x"]
    difference = conv(x, names["hexagon"]).sum(0) - conv(x, names["triangles"]).sum(0)
    assert difference.abs().min() > 1e-3
    assert tuple(names["logits"].shape) == (1, 2)
    clf = names["clf"]
    assert clf.filters_[0].adjacency.shape == (32, 6, 6)
    assert clf.predict(names["graphs"]).tolist() == names["y"]


def test_there_is_code_to_run():
    languages = [block.language for page in PAGES for block in blocks(page)]
    assert languages.count("python") > 15
    assert languages.count("sh") > 10


@pytest.mark.parametrize("line", ["train --no-such-option", "tain MUTAG", "train --layers two"])
def test_a_wrong_command_would_be_noticed(line):
    with pytest.raises(Exception, match=r"[Nn]o such|a valid integer"):
        parse(line.split())


def test_wrong_output_would_be_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError, match=r"line 5"):
        run_page(page)


def test_what_needs_a_missing_package_is_named_and_the_rest_runs(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\n# needs nosuchpackage\n1 / 0\n```\n\n```python\nx = 1\n```\n")
    names, missing = run_page(page)
    assert (names["x"], missing) == (1, ["nosuchpackage"])


def test_the_pages_are_all_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES:
        if page.startswith("docs/"):
            assert page.removeprefix("docs/") in nav
