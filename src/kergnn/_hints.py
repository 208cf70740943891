"""Words of messages; without torch, which the command line starts without."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(value: object, choices: Iterable[str]) -> str:
    """Return a hint for the message on an unknown name: the choice most like it, if any is."""
    known = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(str(value).strip().lower(), known, n=1)
    return f" (did you mean {known[close[0]]}?)" if close else ""


def counted(number: int, name: str) -> str:
    """Return the number and the name, with an s if there is not just one."""
    return f"{number} {name}{'' if number == 1 else 's'}"
