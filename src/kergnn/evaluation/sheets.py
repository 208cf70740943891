"""Tables of strings as text, Markdown, LaTeX or HTML."""

from __future__ import annotations

import html
import itertools
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_WIDEST = 44  # of a cell of text, in characters
_BEST = "* the best of its column, of one network or kernel and all folds"


@dataclass(frozen=True)
class Sheet:
    """A table of strings with a title; ``bold`` are the cells (row, column) to stress."""

    title: str
    head: list[str]
    rows: list[list[str]]
    bold: frozenset[tuple[int, int]] = frozenset()


def _text(sheets: Sequence[Sheet]) -> str:
    parts = []
    for sheet in sheets:
        # The best of a column has a star.
        marked = [
            [f"{cell}*" if (i, j) in sheet.bold else cell for j, cell in enumerate(row)]
            for i, row in enumerate(sheet.rows)
        ]
        lines = [line for row in [sheet.head, *marked] for line in _wrapped(row)]
        widths = [max(len(line[j]) for line in lines) for j in range(len(sheet.head))]
        texts = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        note = ["", _BEST] if sheet.bold else []
        parts.append("\n".join([sheet.title, "", *texts, *note]))
    return "\n\n".join(parts) + "\n"


def _wrapped(row: list[str]) -> list[list[str]]:
    """Cut a row with long cells into several lines."""
    cells = [textwrap.wrap(cell, _WIDEST) or [""] for cell in row]
    return [list(line) for line in itertools.zip_longest(*cells, fillvalue="")]


def _markdown(sheets: Sequence[Sheet]) -> str:
    parts = []
    for sheet in sheets:
        lines = [sheet.head, ["---"] * len(sheet.head)]
        for i, row in enumerate(sheet.rows):
            cells = [cell.replace("|", "\\|") for cell in row]
            lines.append([f"**{c}**" if (i, j) in sheet.bold else c for j, c in enumerate(cells)])
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts.append(f"{sheet.title}\n\n{text}\n")
    return "\n".join(parts)


def _latex(sheets: Sequence[Sheet]) -> str:
    parts = []
    for sheet in sheets:
        lines = [" & ".join(map(_tex, sheet.head)) + r" \\", r"\midrule"]
        for i, row in enumerate(sheet.rows):
            cells = [
                rf"\textbf{{{_tex(cell)}}}" if (i, j) in sheet.bold else _tex(cell)
                for j, cell in enumerate(row)
            ]
            lines.append(" & ".join(cells) + r" \\")
        body = "\n".join([r"\toprule", *lines, r"\bottomrule"])
        parts.append(
            f"% {sheet.title}\n\\begin{{tabular}}{{{'l' * len(sheet.head)}}}\n{body}\n"
            "\\end{tabular}\n"
        )
    return "\n".join(parts)


def _tex(text: str) -> str:
    for character in "\\&%_#$":
        replacement = r"\textbackslash{}" if character == "\\" else f"\\{character}"
        text = text.replace(character, replacement)
    return text.replace("±", r"$\pm$")


def _html(sheets: Sequence[Sheet]) -> str:
    style = (
        "body{font:14px/1.5 system-ui,sans-serif;margin:2rem}table{border-collapse:collapse;"
        "margin-bottom:2rem}td,th{padding:.25rem .75rem;text-align:left;border-bottom:1px solid "
        "#ddd;vertical-align:top}caption{text-align:left;font-weight:600;padding:.5rem 0}"
    )
    parts = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">']
    parts += [f"<title>kergnn results</title><style>{style}</style></head><body>"]
    for sheet in sheets:
        parts += [f"<table><caption>{html.escape(sheet.title)}</caption>", "<thead><tr>"]
        parts += [f"<th>{html.escape(cell)}</th>" for cell in sheet.head]
        parts.append("</tr></thead><tbody>")
        for i, row in enumerate(sheet.rows):
            cells = [
                f"<td><b>{html.escape(cell)}</b></td>"
                if (i, j) in sheet.bold
                else f"<td>{html.escape(cell)}</td>"
                for j, cell in enumerate(row)
            ]
            parts.append(f"<tr>{''.join(cells)}</tr>")
        parts.append("</tbody></table>")
    return "\n".join([*parts, "</body></html>"]) + "\n"


STYLES: dict[str, Callable[[Sequence[Sheet]], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "html": _html,
}
