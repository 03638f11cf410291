"""Render an answer in a format, and put it where it was asked for, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from datahall.errors import OutputError, ScenarioError, nearest

if TYPE_CHECKING:
    from datahall.answer import Answer

FORMATS = ("table", "tree", "json", "csv", "md", "html")
_ENDINGS = {
    ".txt": "table",
    ".json": "json",
    ".csv": "csv",
    ".md": "md",
    ".markdown": "md",
    ".html": "html",
    ".htm": "html",
}


def render(
    answer: Answer,
    form: str = "table",
    *,
    width: int = 100,
    color: bool = False,
    quiet: bool = False,
    explain: bool = False,
) -> str:
    """Return the answer as text in one of `FORMATS` (or "explain", the tree with everything behind it).

    A page that shall `explain` begins with the chain.
    """
    match form:
        case "table" | "tree" | "explain":
            from datahall.report import screen

            draw = {"table": screen.table_text, "tree": screen.tree_text, "explain": screen.explain_text}[
                form
            ]
            return draw(answer, width=width, color=color, quiet=quiet)
        case "json":
            from datahall.report.wire import encode

            return encode(answer)
        case "csv":
            from datahall.report.spreadsheet import spreadsheet

            return spreadsheet(answer)
        case "md":
            from datahall.report.markdown import markdown

            return markdown(answer)
        case "html":
            from datahall.report.page import page

            return page(answer, explain=explain)
    guess = nearest(form, FORMATS, 1)
    raise ScenarioError(
        f'"{form}" is not a format',
        hint=f"one of {', '.join(FORMATS)}" + (f"; did you mean {guess[0]}?" if guess else ""),
    )


def format_of(path: Path) -> str:
    """The format that a file's name asks for; no ending is a table, an unknown one an error."""
    ending = path.suffix.lower()
    if not ending:
        return "table"
    if ending not in _ENDINGS:
        known = ", ".join(_ENDINGS)
        raise OutputError(
            f'"{path}": no format goes with {ending}', hint=f"endings: {known}; or name the format"
        )
    return _ENDINGS[ending]


def write(text: str, path: Path) -> None:
    """Write a file so that a reader sees the old one or the new one, never half."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a device or a pipe
            path.write_text(text, encoding="utf-8")
        else:
            _replace(text, path)
    except OSError as error:
        raise OutputError(
            f"{path} could not be written: {error.strerror or error}", hint=_advice(path)
        ) from error


def _replace(text: str, path: Path) -> None:
    import tempfile

    if path.is_dir():
        raise IsADirectoryError(0, "it is a folder")
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as part:
            part.write(text)
            part.flush()
            os.fsync(part.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _advice(path: Path) -> str:
    if not path.parent.exists():
        return f"make the folder first: mkdir -p {path.parent}"
    return "choose another place with -o; without it the answer goes to the terminal"
