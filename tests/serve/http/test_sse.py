"""Events are whole, whatever pieces their stream comes in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from datahall.serve.http.sse import Events, data_of, event

DATA = st.lists(
    st.binary(min_size=1).filter(lambda data: not set(data) & set(b"\r\n") and data.strip() == data)
)


@given(DATA, st.data(), st.booleans())
def test_events_come_out_as_they_went_in(sent: list[bytes], draw: st.DataObject, has_returns: bool) -> None:
    stream = b"".join(event(data, name="x" if len(data) % 2 else "") for data in sent)
    if has_returns:
        stream = stream.replace(b"\n", b"\r\n")
    events, found = Events(), []
    while stream:
        size = draw.draw(st.integers(1, len(stream)))
        found += events.feed(stream[:size])
        stream = stream[size:]
    assert [data_of(block) for block in found] == sent
    assert events.rest == b""
