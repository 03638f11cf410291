"""What streams of OpenAI's chat and completions have in common: chunks, one for usage without choices, and [DONE]."""

from __future__ import annotations

from datahall.serve.cache.form import END, Table, asked_usage, event_of, table_of
from datahall.serve.ledger.money import Usage

SAID = ("id", "created", "model", "system_fingerprint", "service_tier")  # of an answer, in each of its chunks


def is_usage(event: bytes) -> bool:
    """Whether an event says what was used and nothing else."""
    if b'"usage"' not in event:
        return False
    table = table_of(event)
    return bool(table.get("usage")) and not table.get("choices")


def is_end(event: bytes) -> bool:
    return event.strip() == END


def is_whole(events: list[bytes]) -> bool:
    """Whether every choice has come to its end, and the stream said so."""
    if not events or not is_end(events[-1]):
        return False
    ended: dict[int, bool] = {}
    for event in events:
        for choice in table_of(event).get("choices") or ():
            index = choice.get("index", 0)
            ended[index] = ended.get(index, False) or bool(choice.get("finish_reason"))
    return bool(ended) and all(ended.values())


def usage_event(chunk: bytes, usage: Usage) -> bytes:
    """The event for who asks for usage, where the stream had none."""
    return event_of({**head(table_of(chunk)), "choices": [], "usage": asked_usage(usage)})


def head(table: Table) -> Table:
    """What every chunk of an answer says of it."""
    return {name: table[name] for name in ("object", *SAID) if name in table}
