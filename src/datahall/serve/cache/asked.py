"""What makes two requests the same: tenant, version of the model, route, and the body in one canonical form.

The order of keys in JSON and the blanks between them say nothing, nor does whether the answer is to be streamed, or who
of a tenant's users asks.  Everything else does; in a long body order and blanks do too, but at its first level.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

# of a body, what says how it is answered or for whom, and nothing of what
MANNERS = (
    "stream", "stream_options", "user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "service_tier", "store",
)  # fmt: skip
MOST_SORTED_BYTES = 256 * 1024  # of a body; to sort more would hold up everybody else
MOST_MANNER_BYTES = 1000
_decode = msgspec.json.Decoder(dict[str, object]).decode
_values = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder(order="sorted").encode


def _decode_shallow(body: bytes) -> dict[str, object]:
    """A long body by its keys; each value as it is written, but for those that say how it is answered."""
    values = _values(body)
    said: dict[str, object] = {**values}
    for name in ("stream", "stream_options"):
        value = values.get(name)
        if value is not None and len(memoryview(value)) <= MOST_MANNER_BYTES:
            said[name] = msgspec.json.decode(value)
    return said


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A request as a cache knows it: whose and what, and in which manner it is to be answered."""

    tenant: str
    key: bytes
    streams: bool
    with_usage: bool  # a stream is to end with the tokens that it took

    @property
    def manner(self) -> tuple[bytes, bool, bool]:
        """What and how: who asks the same in another manner hears other bytes."""
        return self.key, self.streams, self.with_usage


class Wish(msgspec.Struct, frozen=True, gc=False):
    """What a request asks of a cache by its header `cache-control`."""

    reads: bool = True
    writes: bool = True


USUAL, REFRESH, BYPASS = Wish(), Wish(reads=False), Wish(reads=False, writes=False)


def wish_of(cache_control: str) -> Wish:
    """What a header says; HTTP's own words.

    >>> wish_of("no-cache"), wish_of("max-age=0, No-Store") == BYPASS
    (Wish(reads=False, writes=True), True)
    """
    if not cache_control:
        return USUAL
    words = {word.strip().lower() for word in cache_control.split(",")}
    if "no-store" in words:
        return BYPASS
    return REFRESH if words & {"no-cache", "max-age=0"} else USUAL


def asked_of(tenant: str, version: str, route: str, body: bytes) -> Asked | None:
    """What a request asks for; None where its body is no table of JSON, and nobody can say."""
    try:
        said = _decode(body) if len(body) <= MOST_SORTED_BYTES else _decode_shallow(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    streams = said.get("stream") is True and route != "embeddings"
    options = said.get("stream_options")
    with_usage = streams and isinstance(options, dict) and options.get("include_usage") is True
    for manner in MANNERS:
        said.pop(manner, None)
    said.pop("model", None)  # the version says it, whatever name it was asked for by
    key = sha256(_encode((tenant, version, route, said))).digest()
    return Asked(tenant, key, streams, with_usage)
