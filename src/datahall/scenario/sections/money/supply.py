"""Where chips may come from and go to: the country they are brought to, and foundries that are left out."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Flag, Listed, Name


class Supply(Section, frozen=True, kw_only=True):
    """What keeps a chip from being had, whatever it can do."""

    country: Annotated[
        str,
        Name(
            "Country that chips are brought to: those that need an export licence for it are left out.",
            of="country",
            example="china",
        ),
    ] = ""
    without: Annotated[
        tuple[str, ...],
        Listed(
            "Makers of wafers or packages to do without: chips that they make, or of whose maker nothing is known, are "
            "left out.",
            of=Name("", of="foundry", example="tsmc"), metavar="FOUNDRIES",
        ),
    ] = ()  # fmt: skip
    licensed: Annotated[
        bool, Flag("Keep chips that need an export licence, as one who has it.", needs=("country",))
    ] = False
