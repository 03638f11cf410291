"""An answer as it is kept: whole, as a stream, or both once both were asked for."""

from __future__ import annotations

from datahall.serve.cache import chat, messages, text
from datahall.serve.cache.form import Form, NotStreamed, events_of, table_in
from datahall.serve.http.sse import DONE
from datahall.serve.ledger.money import Usage

FORMS: dict[str, Form] = {"chat": chat.FORM, "completions": text.FORM, "messages": messages.FORM}
ODD = (
    NotStreamed,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)  # raised by answers of no form that is known
OVERHEAD_BYTES = 600  # of an entry beside its bytes: key, places in two orders, this object


class Kept:
    """One answer; a form that is missing is made of the other when it is first asked for."""

    __slots__ = (
        "_stream",
        "_tail",
        "_whole",
        "counted_bytes",
        "expires_ns",
        "route",
        "stored_ns",
        "tenant",
        "usage",
    )

    def __init__(
        self, tenant: str, route: str, usage: Usage, *, whole: bytes = b"", stream: bytes = b""
    ) -> None:
        self.tenant = tenant
        self.route = route
        self.usage = usage
        self.stored_ns = self.expires_ns = 0
        self.counted_bytes = 0  # as the cache knows it, which keeps it or does not
        self._whole = whole
        self._stream = self._tail = b""
        if stream:
            self._cut(events_of(stream))

    @property
    def size_bytes(self) -> int:
        return len(self._whole) + len(self._stream) + len(self._tail) + OVERHEAD_BYTES

    def whole(self) -> bytes:
        """The answer as one JSON."""
        if not self._whole:
            form = FORMS[self.route]
            self._whole = form.joined(events_of(self._stream + self._tail))
        return self._whole

    def stream(self, with_usage: bool) -> bytes:
        """The answer as the events of a stream, to its very end."""
        if not self._stream:
            self._cut(FORMS[self.route].apart(self._whole))
        if FORMS[self.route].ends_with_done:
            return self._stream + (self._tail if with_usage else b"") + DONE
        return self._stream

    def _cut(self, events: list[bytes]) -> None:
        """Keep the event that says what was used apart: only who asks for it is given it."""
        form = FORMS[self.route]
        shown = [event for event in events if not form.is_usage(event) and not form.is_end(event)]
        self._stream = b"".join(event + b"\n\n" for event in shown)
        if form.ends_with_done:
            said = [event for event in events if form.is_usage(event)]
            self._tail = (said[-1] if said else form.usage_event(shown[-1], self.usage)) + b"\n\n"


def is_worth_keeping(body: bytes) -> bool:
    """Whether a whole answer is one, and no error, whatever its status said."""
    try:
        table_in(body)
    except NotStreamed:
        return False
    return True


def kept_whole(tenant: str, route: str, usage: Usage, body: bytes) -> Kept:
    """An answer that came whole."""
    return Kept(tenant, route, usage, whole=body)


def kept_stream(tenant: str, route: str, usage: Usage, stream: bytes) -> Kept | None:
    """An answer that came as a stream; None where it has no end, an error in it, or no whole form."""
    form = FORMS.get(route)
    if form is None:
        return None
    try:
        events = events_of(stream)
        form.joined(events)
        return Kept(tenant, route, usage, stream=stream) if form.is_whole(events) else None
    except ODD:
        return None
