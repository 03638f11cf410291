"""The figures of `validation/` are what they were: every score, and every predicted row; see `record.py`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from tests.recorded.record import check_calls

from datahall.validation.ledger import LEDGER, validate


def scores(domain: str) -> Iterator[tuple[str, object]]:
    card = validate(domain)
    yield from msgspec.structs.asdict(card).items()
    for source, one in card.by_source.items():
        yield f"mean error on {source} [%]", one.mean_ape


@pytest.mark.parametrize("domain", LEDGER)
def test_scores(domain: str, update: bool) -> None:
    check_calls(f"validation_{domain}", scores(domain), update)
