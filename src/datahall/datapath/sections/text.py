"""What a run on text reads: its tokens as they are stored, each once.

For Llama 3.1 405B on 16,384 chips that is 10 MB/s: text never starves a chip; what storage has to bear are checkpoints.
"""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog

TEXT = "llm-text"


class TextNeed(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a run, and how fast it is read."""

    dataset_bytes: float
    read_bytes_per_s: float


def text_need(catalog: Catalog, num_tokens: float, tokens_per_s: float) -> TextNeed:
    """So many tokens, read at the pace at which they are trained on."""
    each = catalog.dataset(TEXT).sample_bytes
    return TextNeed(dataset_bytes=num_tokens * each, read_bytes_per_s=tokens_per_s * each)
