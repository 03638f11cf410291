"""An answer as Markdown that pastes into an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from datahall.answer import Answer, Table
from datahall.breakdown import Breakdown, Source
from datahall.report.cell import MARK, row
from datahall.report.tree import remark, standing


def markdown(answer: Answer) -> str:
    """Write the answer as Markdown."""
    blocks = [f"**{_escaped(answer.headline)}**", _escaped(answer.binding)]
    blocks += [_table(table) for table in answer.shown_tables]
    if answer.figure is not None:
        lines = (line for one in answer.figures for line in _tree(one, answer.citations()))
        blocks.append("### How it adds up\n\n" + "\n".join(lines))
    if answer.notes:
        blocks.append("### Notes\n\n" + "\n".join(f"- {_escaped(note)}" for note in answer.notes))
    if answer.citations():
        listed = (f"{n}. {_escaped(str(source))}" for n, source in enumerate(answer.citations(), start=1))
        blocks.append("### Sources\n\n" + "\n".join(listed))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _table(table: Table) -> str:
    head = " | ".join(_escaped(column.name) for column in table.columns)
    rule = " | ".join("---:" if column.numeric else "---" for column in table.columns)
    lines = [f"### {_escaped(table.title[:1].upper() + table.title[1:])}", "", f"| {head} |", f"| {rule} |"]
    for index, cells in enumerate(table.rows):
        texts = [_escaped(text) for text in row(table.columns, cells)]
        if index == table.marked:
            texts = [f"**{MARK} {texts[0]}**", *(f"**{text}**" if text else "" for text in texts[1:])]
        lines.append(f"| {' | '.join(texts)} |")
    if table.note:
        lines += ["", _escaped(table.note)]
    return "\n".join(lines)


def _tree(figure: Breakdown, citations: Sequence[Source]) -> list[str]:
    return [f"{'  ' * depth}- {_line(part, citations)}" for depth, part in figure.walk()]


def _line(part: Breakdown, citations: Sequence[Source]) -> str:
    formula = f" = {_escaped(part.formula)}" if part.formula else ""
    marks = [*standing(part), *(f"{source.kind} [{citations.index(source) + 1}]" for source in part.sources)]
    marks += [remark(part)] if remark(part) else []
    rest = f" ({_escaped(', '.join(marks))})" if marks else ""
    return f"{_escaped(part.name)}: **{part.shown}**{formula}{rest}"


def _escaped(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
    return re.sub(r"<(?=[A-Za-z/!])", r"\\<", plain)  # what would be read as a tag
