"""An answer that is drawn again and again over the last one, until whoever looks has seen enough."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from datahall.cli.delivery import Delivery, wants_color, width
from datahall.cli.streams import put

if TYPE_CHECKING:
    from datahall.answer import Answer

HOME, CLEARED, REST_OF_LINE, REST_OF_SCREEN = "\x1b[H", "\x1b[2J", "\x1b[K", "\x1b[J"


def is_live(way: Delivery) -> bool:
    """Whether somebody looks at a terminal, which can draw over itself."""
    return way.form in (None, "table") and not way.output and sys.stdout.isatty() and not way.explain


def draw(views: Iterable[Answer], way: Delivery) -> None:
    """Draw views until Ctrl-C, which is how one is left."""
    from datahall.report.output import render

    first = CLEARED
    try:
        for view in views:
            text = render(view, "table", width=width(), color=wants_color(way.color), quiet=way.quiet)
            put(first + over(text, shutil.get_terminal_size().lines))
            first = ""
    except KeyboardInterrupt:
        put("\n")


def over(text: str, num_lines: int) -> str:
    """A view drawn over the last one; what the screen has no room for is left out.

    >>> over("one\\ntwo\\nthree\\n", 3).replace("\\x1b", "^")
    '^[Hone^[K\\ntwo^[K\\n^[J'
    """
    shown = text.splitlines()[: max(num_lines - 1, 1)]
    return HOME + "".join(f"{line}{REST_OF_LINE}\n" for line in shown) + REST_OF_SCREEN
