"""What the documentation site makes of its pages when it is built: figures, commands, formulas.

Formulas become MathML, which browsers show without any script. The font for them comes from the
package ziamath, since not every system has one.
"""

from __future__ import annotations

import contextlib
import html
import io
import logging
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import make_figures
from latex2mathml.converter import convert
from mkdocs.structure.files import File

from kergnn.cli import main
from kergnn.cli.app import app

log = logging.getLogger("mkdocs.hooks.kergnn")

RESULTS = Path(__file__).resolve().parent.parent / "results"
MATH_FONT = "STIXTwoMath-Regular.ttf"
COMMANDS = "<!-- the commands -->"
_TABLE = re.compile(r"<!-- kergnn table(.*?) -->")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Draw the figures, and add the stored one of the benchmark and the font of the formulas."""
    bench = (RESULTS / "bench/bench.svg").read_bytes()
    files.append(File.generated(config, "figures/bench.svg", content=bench))
    font = resources.files("ziamath") / "fonts" / MATH_FONT
    files.append(File.generated(config, f"assets/{MATH_FONT}", content=font.read_bytes()))
    for name, draw in make_figures.FIGURES.items():
        files.append(File.generated(config, f"figures/{name}.svg", content=make_figures.svg(draw)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the help of every command, and tables of stored results, where a page asks for them."""

    def table(match: re.Match[str]) -> str:
        return _output("table", "--format", "markdown", "--store", str(RESULTS), *match[1].split())

    markdown = _TABLE.sub(table, markdown)
    return markdown.replace(COMMANDS, command_help()) if COMMANDS in markdown else markdown


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Turn formulas into MathML."""

    def formula(match: re.Match[str]) -> str:
        tag, bracket, latex = match.groups()
        try:
            mathml = math(html.unescape(latex), block=bracket == "[")
        except Exception as error:
            log.warning("%s: formula %s: %r", page.file.src_uri, latex, error)
            return match[0]
        return f'<{tag} class="arithmatex">{mathml}</{tag}>'

    return _FORMULA.sub(formula, content)


def math(latex: str, block: bool) -> str:
    """Return a formula as MathML; a command that is not known is an error."""
    mathml = convert(" ".join(latex.split()), display="block" if block else "inline")
    unknown = re.search(r"\\\w+", mathml)
    if unknown:
        raise ValueError(f"{unknown[0]} is not known")
    return mathml


def command_help() -> str:
    """Return what ``kergnn --help`` and ``kergnn COMMAND --help`` show."""
    parts = [f"```text\n{_output('--help')}\n```"]
    for command in app.registered_commands:
        name = command.name or command.callback.__name__.replace("_", "-")
        parts.append(f"## kergnn {name}\n\n```text\n{_output(name, '--help')}\n```")
    return "\n\n".join(parts)


def _output(*command: str) -> str:
    """Return what a command shows."""
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "84"
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = main([*command])
    finally:
        os.environ.pop("COLUMNS")
        if columns is not None:
            os.environ["COLUMNS"] = columns
    if code:
        raise RuntimeError(f"kergnn {' '.join(command)} failed with exit code {code}")
    return out.getvalue().strip()
