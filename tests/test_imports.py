"""Imports point one way, so that any part can be read, used and tested without those above it."""

import ast
import subprocess
import sys
from pathlib import Path

import kergnn

ROOT = Path(kergnn.__file__).parent

# Lower layers first; a module may import from its own layer and from those before it.
LAYERS = [
    {"_checks", "_compile", "_denormals", "_hints", "_threads", "egobuilder", "memory", "versions"},
    {"egographs", "seedloader"},
    {"kernels"},
    {"engine"},
    {"nn", "testing"},
    {"data", "config"},
    {"batches", "outputs", "baselines"},
    {"edgebatches", "models", "locks"},
    {"machines"},
    {"prediction"},
    {"checkpoints"},
    {"training"},
    {"preparation"},
    {"runs", "bench", "evaluation"},
    {"explain"},
    {"reporting"},
    {"sklearn"},
    {"cli", "__main__"},
]


def layer_of(part):
    return next(i for i, names in enumerate(LAYERS) if part in names)


def imported_parts(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules = [node.module]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            if module == "kergnn" or module.startswith("kergnn."):
                yield module.partition(".")[2].partition(".")[0]


def test_every_module_imports_only_from_below():
    checked = 0
    for path in ROOT.rglob("*.py"):
        relative = path.relative_to(ROOT)
        part = relative.parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for imported in imported_parts(path):
            if not imported:  # the version number
                assert part == "cli", f"{relative} imports the whole package"
                continue
            assert layer_of(imported) <= layer_of(part), f"{relative} imports kergnn.{imported}"
            checked += 1
    assert checked > 10


def test_neither_the_package_itself_nor_the_command_line_imports_anything_heavy():
    check = (
        "import sys, kergnn, kergnn.cli; dir(kergnn); "
        "print({'torch', 'sklearn', 'matplotlib'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", check], text=True).strip() == "set()"
    for name in kergnn.__all__:
        assert getattr(kergnn, name) is not None
