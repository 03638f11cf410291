"""What every question may say: which model, which seed, what to call it."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Count, Name, Text

USUAL_SEED = 0


class Root(Section, frozen=True, kw_only=True):
    """The keys at the head of a file."""

    name: Annotated[str, Text("What to call the scenario.", rare=True)] = ""
    model: Annotated[
        str,
        Name(
            "Name of the catalogue, or a config.json in the Hugging Face format.",
            of="model",
            example="llama-3.1-8b",
        ),
    ] = ""
    seed: Annotated[int, Count("Seed of every random draw.", least=0)] = USUAL_SEED

    def usual(self) -> dict[str, object]:
        return {"seed": USUAL_SEED}  # 0 is a seed like any other, and no empty default
