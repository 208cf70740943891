"""Docstrings are written with reST roles, mkdocstrings reads Markdown: one becomes the other."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

# :class:`~a.b.C`, :func:`f`
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`(~?)([\w.]+)`")
_INLINE = re.compile(r":math:`(.+?)`", flags=re.DOTALL)
_LINK = re.compile(r"`([^`<]+?)\s*<(https?://[^>]+)>`_+", flags=re.DOTALL)
_LITERAL = re.compile(r"[ \t]?::[ \t]*\n(?=[ \t]*\n[ \t]+)")
_BLOCK = re.compile(
    r"^(?P<indent>[ \t]*)\.\. math::(?P<first>[^\n]*)\n"
    r"(?P<rest>(?:(?P=indent)[ \t]+\S[^\n]*(?:\n|\Z))*)",
    flags=re.MULTILINE,
)


class RestDocstrings(griffe.Extension):
    """Rewrites the docstring of every object that is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: list[griffe.Function] = []

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Remember a function: a submodule of the same name would take its place."""
        self.functions.append(func)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value, obj)

    def on_package(self, **_: Any) -> None:
        """Let functions stand before submodules of the same name, as they do in Python."""
        for function in self.functions:
            place = function.parent
            if place is not None and place.members[function.name].is_module:
                place.members[function.name] = function
                self.on_object(obj=function)


def to_markdown(text: str, obj: griffe.Object | None = None) -> str:
    """Return a docstring with roles as cross references and formulas between dollars."""

    def reference(match: re.Match[str]) -> str:
        short, name = match.groups()
        shown = name.rpartition(".")[2] if short else name
        # Optional: what has no place in the reference is shown as code.
        target = full_name(name, obj)
        return f'<autoref identifier="{target}" optional><code>{shown}</code></autoref>'

    text = _BLOCK.sub(_formula, text + "\n")
    text = _INLINE.sub(lambda match: f"${' '.join(match[1].split())}$", text)
    text = _LINK.sub(lambda match: f"[{' '.join(match[1].split())}]({match[2]})", text)
    text = _LITERAL.sub(":\n", text)
    return ROLE.sub(reference, text).rstrip()


def full_name(name: str, obj: griffe.Object | None) -> str:
    """Return the dotted path of a name as the module of ``obj`` sees it."""
    if obj is None or name.startswith("kergnn"):
        return name
    try:
        return obj.resolve(name)
    except griffe.NameResolutionError:
        return f"{obj.package.path if obj.module.is_package else obj.module.parent.path}.{name}"


def _formula(match: re.Match[str]) -> str:
    indent = match["indent"]
    lines = [match["first"], *textwrap.dedent(match["rest"]).splitlines()]
    body = "\n".join(indent + line.strip() for line in lines if line.strip())
    return f"\n{indent}$$\n{body}\n{indent}$$\n\n"
