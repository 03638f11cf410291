"""`datahall explain`: the chain behind an answer down to its sources, or what a term means."""

from __future__ import annotations

import click

from datahall.answers.verbs import BY_NAME, GROUPS, words
from datahall.cli.groups import SETTINGS, write_examples

ASKED = {group.name for group in GROUPS if group.name != "explain"}


class Explain(click.Command):
    """A question is asked again with everything behind it; any other words are a term."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(words(BY_NAME["explain"]), formatter)


@click.command(
    "explain",
    cls=Explain,
    context_settings={**SETTINGS, "ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", metavar="QUESTION… | TERM", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def explain(context: click.Context, words: tuple[str, ...]) -> None:
    """Ask a question again and see everything behind its answer; or look up a term."""
    from datahall.cli.command import Question
    from datahall.cli.main import root

    if words and words[0] in ASKED:
        asked = {"explain": True, "words": list(words)}
        code = root.main(list(words), prog_name="datahall", standalone_mode=False, obj=asked)
    else:
        code = Question(BY_NAME["explain"]).main(
            list(words), prog_name="datahall explain", standalone_mode=False, obj={"words": list(words)}
        )
    context.exit(code if isinstance(code, int) else 0)
