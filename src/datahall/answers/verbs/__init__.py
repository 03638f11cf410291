"""The table of verbs: what each asks, which inputs it takes, which function answers, and lines to copy.

One file a subject, joined here.  `--help`, completion, `explain`, the functions of `import datahall as dh`, the
reference and the golden tests are drawn from it.  It loads nothing, so that help is quick.
"""

from __future__ import annotations

from datahall.answers.verb import Group, Verb
from datahall.answers.verbs import (
    catalog,
    chip,
    comparison,
    economics,
    fabric,
    model,
    serving,
    training,
    validation,
)
from datahall.answers.verbs.operations import datapath, gateway, power, reliability, run, scheduling

GROUPS = (
    Group("plan", "what to build, and why not something else", "decide", golden="plan serve"),
    Group(
        "compare",
        "what differs between questions, answers, chips, models or clouds, and what that does",
        "decide",
    ),
    Group("sweep", "one question at many points, and the best of them", "decide"),
    Group("explain", "the chain behind any answer, or what a term means", "decide"),
    Group("show", "one question, answered from closed forms", "look"),
    Group("simulate", "watch it happen, event by event", "look"),
    Group("validate", "our error against public measurements", "trust"),
    Group("check", "every problem of a scenario, a catalogue file or a config.json", "trust"),
    Group("catalog", "what is known of chips, models, links, servers, prices; search and add", "trust"),
    Group(
        "gateway", "keys of a gateway, what they used, what it does now, and an endpoint under load", "run"
    ),
)
# as a group lists its verbs
SUBJECTS = (
    comparison,
    chip,
    model,
    serving,
    training,
    run,
    reliability,
    power,
    scheduling,
    fabric,
    datapath,
    economics,
    validation,
    catalog,
    gateway,
)

PLACES = [group.name for group in GROUPS]
VERBS: tuple[Verb, ...] = tuple(
    sorted(
        (verb for subject in SUBJECTS for verb in subject.VERBS), key=lambda verb: PLACES.index(verb.group)
    )
)
BY_NAME = {verb.name: verb for verb in VERBS}
BY_FUNCTION = {verb.function: verb for verb in VERBS}


def words(verb: Verb) -> list[str]:
    """The lines to copy, whole."""
    return [f"datahall {verb.name} {line}".rstrip() for line in verb.examples]
