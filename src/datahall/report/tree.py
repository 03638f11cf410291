"""A figure and the chain behind it as a tree, its sources numbered and listed once."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from rich.tree import Tree

from datahall.breakdown import Breakdown, Source

WHOLE = 1_000


def draw(figure: Breakdown, citations: Sequence[Source], depth: int = WHOLE, *, notes: bool = True) -> Tree:
    """Draw a figure down to `depth` levels below it."""
    numbers = {source: number for number, source in enumerate(citations, start=1)}
    return _branch(figure, numbers, depth, notes)


def _branch(figure: Breakdown, numbers: dict[Source, int], depth: int, notes: bool) -> Tree:
    label = _label(figure, numbers, notes)
    if depth <= 0 and figure.parts:
        label.append(f"  … {sum(1 for _ in figure.walk()) - 1} more", style="dim")
    branch = Tree(label, guide_style="dim", highlight=False)
    if depth > 0:
        branch.children = [_branch(part, numbers, depth - 1, notes) for part in figure.parts]
    return branch


def _label(figure: Breakdown, numbers: dict[Source, int], notes: bool) -> Text:
    label = Text(f"{figure.name} ")
    label.append(figure.shown, style="bold")
    if figure.formula:
        label.append(f"  = {figure.formula}", style="cyan")
    kinds = {source.kind for source in figure.sources}
    basis = figure.basis if figure.basis not in kinds else ""
    marks = tuple(filter(None, (basis, *(f"{source.kind} [{numbers[source]}]" for source in figure.sources))))
    if marks:
        label.append(f"  {', '.join(marks)}", style="dim")
    if notes and figure.note:
        label.append(f"  ({figure.note})", style="dim italic")
    return label


def described(source: Source) -> str:
    """A source as one line of the list that the marks point to."""
    return f"{source.title}, {source.date}, {source.kind}"
