"""Render an answer in a format, and put it where it was asked for, whole or not at all."""

from __future__ import annotations

import errno
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


def format_of(path: Path, *others: str) -> str:
    """The format that a file's name asks for; no ending is a table, an unknown one an error that names `others` too."""
    ending = path.suffix.lower()
    if not ending:
        return "table"
    if ending not in _ENDINGS:
        known = ", ".join((*_ENDINGS, *others))
        raise OutputError(
            f'"{path}": no format goes with {ending}', hint=f"endings: {known}; or name the format"
        )
    return _ENDINGS[ending]


def check_place(path: Path) -> None:
    """Refuse a place that nothing can be written to, before what is to stand there is computed."""
    folder = path.parent
    if path.is_dir():
        why = "it is a folder"
    elif not folder.is_dir():
        why = f"{folder} is no folder" if folder.exists() else f"there is no folder {folder}"
    elif not os.access(path if _is_device(path) else folder, os.W_OK):
        why = os.strerror(errno.EACCES)
    else:
        return
    raise _unwritten(path, why)


def write(content: str | bytes, path: Path) -> None:
    """Write a file so that a reader sees the old one or the new one, never half."""
    data = content.encode() if isinstance(content, str) else content
    try:
        if _is_device(path):
            path.write_bytes(data)
        else:
            _replace(data, path)
    except OSError as error:
        raise _unwritten(path, error.strerror or str(error)) from error


def _is_device(path: Path) -> bool:
    """Whether it is a device or a pipe, which nothing stands in place of."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _unwritten(path: Path, why: str) -> OutputError:
    return OutputError(f"{path} could not be written: {why}", hint=_advice(path))


def _replace(data: bytes, path: Path) -> None:
    import tempfile

    if path.is_dir():
        raise IsADirectoryError(0, "it is a folder")
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as part:
            part.write(data)
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
