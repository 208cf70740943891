"""Runs the code blocks of a Markdown page as a reader would, one after the other.

- ``python`` blocks share their names. If a ``text`` block follows, it is what they must print.
- A python block whose first line is ``# needs NAME`` runs where the package is installed.
- Blocks with ``title="FILE"`` are written to that file.
- Lines of ``sh`` blocks that start with ``kergnn`` are parsed as the program would; those that the
  caller wants to run are run.
"""

import contextlib
import importlib.util
import io
import itertools
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import typer

from kergnn.cli import main
from kergnn.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
)

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    flags=re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """One code block: its language, its text, its file name if it has one, its line."""

    language: str
    text: str
    title: str | None
    line: int


def blocks(page):
    """Return the code blocks of a page."""
    text = (ROOT / page).read_text()
    found = []
    for match in _FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', match["rest"])
        line = text.count("\n", 0, match.start("text"))
        found.append(Block(match["language"], match["text"], title and title[1], line))
    return found


def commands(block):
    """Return the arguments of every kergnn command of a shell block."""
    if block.language != "sh":
        return []
    parts = [part for line in block.text.splitlines() for part in line.split("&&")]
    lines = [shlex.split(part, comments=True) for part in parts]
    return [line[1:] for line in lines if line[:1] == ["kergnn"]]


def parse(arguments):
    """Read the arguments as the program does, without running the command."""
    group = typer.main.get_command(app)
    with group.make_context("kergnn", list(arguments)) as context:
        name, command, rest = group.resolve_command(context, list(arguments))
        command.make_context(name, rest, parent=context).close()


def run_page(page, run=None):
    """Run a page in the current folder; return its names and the packages that were missing.

    ``run`` turns the arguments of a command into those to run it with, or ``None`` not to run it.
    """
    names, missing = {"__name__": "page"}, []
    page_blocks = blocks(page)
    for block, following in itertools.zip_longest(page_blocks, page_blocks[1:]):
        if block.title:
            Path(block.title).write_text(block.text)
        for arguments in commands(block):
            parse(arguments)
            wanted = run(arguments) if run else None
            if wanted is not None:
                assert main(wanted) == 0, f"{page}: kergnn {' '.join(wanted)}"
        if block.language != "python":
            continue
        need = re.match(r"# needs (\w+)\n", block.text)
        if need and importlib.util.find_spec(need[1]) is None:
            missing.append(need[1])
            continue
        printed = run_block(page, block, names)
        if following is not None and following.language == "text":
            assert printed.strip() == following.text.strip(), f"{page}, line {following.line}"
    return names, missing


def run_block(page, block, names):
    """Run one python block and return what it printed."""
    code = compile("\n" * block.line + block.text, str(ROOT / page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()
