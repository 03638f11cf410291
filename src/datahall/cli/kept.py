"""What a long question has found so far, in a file beside the one that its answer is to stand in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from datahall.scenario.form import Form
from datahall.scenario.kinds import Raw

JOURNAL, ENDING = "journal", ".points"


@contextmanager
def kept_beside(target: Path | None, given: dict[str, Raw], form: Form) -> Iterator[None]:
    """Where a question can keep what it finds and nobody said where: beside its answer, until that is written."""
    device = target is not None and target.exists() and not target.is_file()
    if target is None or device or JOURNAL not in form.fields or JOURNAL in given:
        yield
        return
    path = target.with_name(f"{target.name}{ENDING}")
    given[JOURNAL] = str(path)
    try:
        yield
    except click.exceptions.Exit:  # written, and the answer is no
        path.unlink(missing_ok=True)
        raise
    path.unlink(missing_ok=True)
