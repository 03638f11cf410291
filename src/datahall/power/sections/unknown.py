"""Power that nobody can say: a plan has this section where a chip's or a network's was never published."""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.chip import Chip


class UnknownPower(msgspec.Struct, frozen=True):
    """What a chip of this kind, or the network that joins several, may draw is not published."""

    chip: Chip
