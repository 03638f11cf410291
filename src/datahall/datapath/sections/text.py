"""What a run on text reads: its tokens as they are stored, each once.

For Llama 3.1 405B on 16,384 chips that is 10 MB/s: text never starves a chip; what storage has to bear are checkpoints.
"""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown, derived, fact, given, product
from datahall.catalog import Catalog

TEXT = "llm-text"


class TextNeed(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a run, and how fast it is read."""

    dataset: Breakdown
    read: Breakdown

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        return self.dataset, self.read


def text_need(catalog: Catalog, num_tokens: float, tokens_per_s: float) -> TextNeed:
    """So many tokens, read at the pace at which they are trained on."""
    known = catalog.dataset(TEXT).facts["sample_bytes"]
    each = fact("bytes of a token", known.value, known.unit, known.source, note=known.note)
    tokens = given("tokens", num_tokens, "tokens", field="tokens")
    rate = derived("tokens per second", tokens_per_s, "tokens_per_s", "of the chosen layout")
    return TextNeed(
        dataset=product("data", (tokens, each), "bytes"),
        read=product("read of the data", (rate, each), "bytes_per_s"),
    )
