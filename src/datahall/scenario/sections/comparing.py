"""Questions about questions: what is put side by side, and which inputs of a question have many values."""

from typing import Annotated, Any

from datahall.errors import ScenarioError
from datahall.scenario.field import Section
from datahall.scenario.kinds import Axes, Axis, Change, File, Listed, Raw, Reading, Text

MOST_WORKERS = 1024
RAY = "ray"  # one that runs, or a new one on this machine; ray://HOST:PORT is one elsewhere


class Workers(Text, frozen=True):
    """How many processes answer at once, or the Ray cluster that does: 4, ray, ray://HOST:PORT."""

    def read(self, raw: Raw, at: Reading) -> str:
        text = super().read(raw, at)
        if text == RAY or (text.startswith(f"{RAY}://") and text.rpartition(":")[2].isdecimal()):
            return text
        if not text.isdecimal() or not 1 <= int(text) <= MOST_WORKERS:
            raise ScenarioError(
                f'"{text}" says neither how many processes nor which cluster',
                hint=f"from 1 to {MOST_WORKERS:,}, {RAY}, or {RAY}://HOST:PORT",
            )
        return str(int(text))


class Comparison(Section, frozen=True, kw_only=True):
    """What is put side by side."""

    things: Annotated[
        tuple[str, ...],
        Listed(
            "Scenario files, answers saved as JSON, chips, models, or who rents chips out: several of one kind.",
            of=Text(""),
            repeats=True,
            metavar="THING",
            example="h100-sxm",
        ),
    ] = ()
    variants: Annotated[
        tuple[dict[str, Any], ...],
        Change(
            "One more variant of a scenario file: inputs in place of what it says.",
            flat="set",
            metavar="INPUT=VALUE,…",
            example="chips=2048",
        ),
    ] = ()


class Sweep(Section, frozen=True, kw_only=True):
    """A question with many values of some inputs, and how their answers are shown and found."""

    question: Annotated[
        str,
        File("A scenario file: what is asked for each point.", metavar="SCENARIO", example="question.toml"),
    ] = ""
    over: Annotated[
        tuple[Axis, ...],
        Axes(
            "Inputs and their values: chips=512,1024 or users=1000..10000:1000 (steps) or batch=1..64:x2 (doubled).",
            metavar="INPUT=VALUES",
            example="chips=512,1024,2048",
        ),
    ] = ()
    show: Annotated[
        tuple[str, ...],
        Listed(
            "Results that the table has (default: the main ones).",
            of=Text(""),
            metavar="RESULT",
            example="step_s",
        ),
    ] = ()
    best: Annotated[
        str,
        Text(
            "Result that the best point has the least or the most of (default: the first of the main ones).",
            metavar="[least|most] RESULT",
            example='"least step_s"',
        ),
    ] = ""
    workers: Annotated[
        str,
        Workers(
            "How many processes answer at once, or the Ray cluster that does, ray or ray://HOST:PORT (default: one a core).",
            metavar="N|ray",
            manner=True,
            example="4",
        ),
    ] = ""
    journal: Annotated[
        str,
        Text(
            "Where points are kept as they end, from which a stopped sweep goes on (default: beside the file of -o).",
            metavar="FILE",
            manner=True,
            rare=True,
            example="sweep.points",
        ),
    ] = ""
