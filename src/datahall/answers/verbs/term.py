"""The verb that explains a term, or another question."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import Takes

VERBS = (
    Verb(
        name="explain",
        about="what a term means, in which unit, and what it is easily taken for",
        answer="term.term:explain",
        takes=(Takes("files", only=("term",)),),
        arguments=("term",),
        by_file=False,
        several=True,
        examples=("MFU", "show roofline h200 --model llama-3.1-8b --batch 32"),
        details="With a question in place of a term: the chain behind its answer, down to the sources.",
    ),
)
