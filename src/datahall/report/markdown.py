"""An answer as Markdown that pastes into an issue or a pull request."""

from __future__ import annotations

from datahall.answer import Answer, Table
from datahall.breakdown import Breakdown
from datahall.report.cell import MARK, row


def markdown(answer: Answer) -> str:
    """Write the answer as Markdown."""
    blocks = [f"**{_escaped(answer.headline)}**", _escaped(answer.binding)]
    blocks += [_table(table) for table in answer.tables]
    if answer.figure is not None:
        blocks.append("### How it adds up\n\n" + "\n".join(_tree(answer.figure)))
    if answer.notes:
        blocks.append("### Assumptions\n\n" + "\n".join(f"- {_escaped(note)}" for note in answer.notes))
    if answer.citations():
        listed = (f"{n}. {_escaped(str(source))}" for n, source in enumerate(answer.citations(), start=1))
        blocks.append("### Sources\n\n" + "\n".join(listed))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _table(table: Table) -> str:
    head = " | ".join(_escaped(column.name) for column in table.columns)
    rule = " | ".join("---:" if column.numeric else "---" for column in table.columns)
    lines = [f"### {table.title}", "", f"| {head} |", f"| {rule} |"]
    for index, cells in enumerate(table.rows):
        texts = [_escaped(text) for text in row(table.columns, cells)]
        if index == table.marked:
            texts = [f"**{MARK} {texts[0]}**", *(f"**{text}**" if text else "" for text in texts[1:])]
        lines.append(f"| {' | '.join(texts)} |")
    if table.note:
        lines += ["", _escaped(table.note)]
    return "\n".join(lines)


def _tree(figure: Breakdown) -> list[str]:
    return [
        f"{'  ' * depth}- {_escaped(part.name)}: **{part.shown}**"
        + (f" = {_escaped(part.formula)}" if part.formula else "")
        for depth, part in figure.walk()
    ]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
