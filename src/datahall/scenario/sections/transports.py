"""What is asked of transports side by side: which, and the message, loss and incast that they are held against."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Count, Listed, Name, Quantity, Share


class Transports(Section, frozen=True, kw_only=True):
    """Transports on one network, each with the settings it usually has."""

    transports: Annotated[
        tuple[str, ...],
        Listed(
            "Transports side by side: infiniband, roce, spectrum-x, tcp.",
            of=Name("", of="transport"),
            metavar="TRANSPORT",
        ),
    ] = ()
    size_bytes: Annotated[float, Quantity("Bytes of one message.", above=True, example="1MB")] = 1e6
    loss_fraction: Annotated[float, Share("Share of packets that are lost.", below=True)] = 1e-5
    senders: Annotated[int, Count("Incast: chips that send to one at once.", least=2)] = 32
    paths: Annotated[
        int, Count("Queue pairs that a message is split over where each has a path of its own.", most=1024)
    ] = 1
