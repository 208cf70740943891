"""What docstrings and pages refer to exists, and docstrings become Markdown."""

import importlib
import inspect
import operator
import pkgutil
import re

import pytest
from snippets import PAGES, ROOT

import kergnn

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`~?([\w.]+)`")


def find(name, module=None):
    """Return the object of a dotted name or raise; ``module`` is where it is written."""
    if module is None or name.startswith("kergnn"):
        return pkgutil.resolve_name(name)
    packages = [importlib.import_module(module.__name__.rpartition(".")[0]), kergnn]
    for place in (module, *filter(inspect.isclass, vars(module).values()), *packages):
        if hasattr(place, name.partition(".")[0]):
            return operator.attrgetter(name)(place)
    raise AttributeError(f"{module.__name__} knows no {name}")


MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(kergnn.__path__, "kergnn.")
    # The engine is compiled when it is imported, and not public; __main__ would run.
    if not info.name.startswith(("kergnn.engine.", "kergnn.__main__"))
)


def test_every_reference_in_a_docstring_exists():
    checked = 0
    for module in map(importlib.import_module, MODULES):
        for name in ROLE.findall(inspect.getsource(module)):
            find(name, module)
            checked += 1
    assert checked > 40


def test_every_reference_in_a_page_exists():
    checked = 0
    for page in PAGES:
        text = (ROOT / page).read_text()
        references = re.findall(r"\]\[(kergnn[\w.]*)\]", text)
        for name in [*references, *re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE)]:
            find(name)
            checked += 1
    assert checked > 40


@pytest.mark.parametrize("name", ["kergnn.kernels.no_such_kernel", "kergnn.KerGNN.no_such_method"])
def test_a_wrong_reference_would_be_noticed(name):
    with pytest.raises(AttributeError):
        find(name)


def test_every_public_name_is_in_the_reference():
    pages = "".join(path.read_text() for path in (ROOT / "docs/api").glob("*.md"))
    shown = set(re.findall(r"^::: (\S+)$", pages, flags=re.MULTILINE))
    for module in map(importlib.import_module, sorted(shown & {*MODULES, "kergnn"})):
        shown |= {f"{module.__name__}.{name}" for name in getattr(module, "__all__", [])}
    objects = [find(name) for name in shown]
    for name in kergnn.__all__:
        assert name == "__version__" or any(getattr(kergnn, name) is found for found in objects)
