"""`datahall explain`: the chain behind an answer down to its sources, or what a term means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from datahall.cli.verbs import Question

if TYPE_CHECKING:
    from datahall.answer import Answer

VERBS = ("plan", "show", "catalog", "check", "validate")


@click.command(
    "explain",
    cls=Question,
    examples="""
    datahall explain show roofline h200 --model llama-3.1-8b --batch 32
    datahall explain MFU
    """,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", metavar="QUESTION… | TERM", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> None:
    """Ask a question again and see everything behind its answer; or look up a term."""
    from datahall.cli.main import root

    if words and words[0] in VERBS:
        code = root.main(list(words), prog_name="datahall", standalone_mode=False, obj={"explain": True})
    else:
        code = term.main(list(words), prog_name="datahall explain", standalone_mode=False)
    context.exit(code if isinstance(code, int) else 0)


def _term() -> click.Command:
    from datahall.cli.question import question

    @question(None, "explain", examples="datahall explain MFU", catalog=False)
    @click.argument("words", metavar="TERM", nargs=-1)
    def lookup(words: tuple[str, ...]) -> Answer:
        """What a term means, in which unit, and what it is easily taken for."""
        from datahall.show.term import explain_term

        return explain_term(" ".join(words))

    return lookup


term = _term()
