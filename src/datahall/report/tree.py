"""A figure and the chain behind it as a tree, its sources numbered and listed once."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from rich.tree import Tree

from datahall.breakdown import Breakdown, Source

WHOLE = 1_000
# facts are known by the kind of their source, and what is computed by its formula
ORIGINS = {
    "input": "input",
    "derived": "counted",
    "decision": "chosen",
    "assumption": "assumption",
    "fitted": "fitted",
    "model": "modelled",
    "simulated": "simulated",
}


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
    cited = [f"{source.kind} [{numbers[source]}]" for source in figure.sources]
    marks = [*standing(figure, notes=notes), *cited]
    if marks:
        label.append(f"  {', '.join(marks)}", style="dim")
    if notes and remark(figure):
        label.append(f"  ({remark(figure)})", style="dim italic")
    return label


def standing(figure: Breakdown, *, notes: bool = True) -> list[str]:
    """What a figure rests on beside its sources: an input, an assumption, a fit and on what, its level."""
    kinds = {source.kind for source in figure.sources}
    origin = ORIGINS.get(figure.origin, "")
    if figure.origin == "fitted" and notes and figure.note:
        origin = f"fitted on {figure.note}"
    basis = figure.basis if figure.basis not in kinds else ""
    return [word for word in (origin, basis) if word]


def remark(figure: Breakdown) -> str:
    """What else is said of a figure; of a fitted one, what it was fitted on is said already."""
    return "" if figure.origin == "fitted" else figure.note


def described(source: Source) -> str:
    """A source as one line of the list that the marks point to."""
    return f"{source.title}, {source.date}, {source.kind}"
