"""What is kept, for whom, for how long, and what goes first."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.cache.answers import STREAM, USAGE, USED, asked, body

from datahall.serve.cache.asked import BYPASS, MOST_SORTED_BYTES, REFRESH, USUAL, Asked, asked_of, wish_of
from datahall.serve.cache.exact import Bounds, ExactCache
from datahall.serve.cache.kept import OVERHEAD_BYTES, Kept, kept_stream, kept_whole

NOW = 1_795_000_000 * 10**9


def one(size: int = 100, tenant: str = "acme") -> Kept:
    return kept_whole(tenant, "embeddings", USAGE, b"x" * size)


def named(name: str, tenant: str = "acme") -> Asked:
    return Asked(tenant, f"{tenant}/{name}".encode(), False, False)


def test_the_same_question_in_other_words_of_json_is_the_same() -> None:
    plain = asked_of(
        "acme",
        "small@1",
        "chat",
        b'{"model":"small","temperature":0,"messages":[{"role":"user","content":"A"}]}',
    )
    other = asked_of(
        "acme",
        "small@1",
        "chat",
        b'{ "messages": [ {"content": "\\u0041", "role": "user"} ],\n "temperature": 0, "model": "alias" }',
    )
    assert plain is not None
    assert plain == other


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 1},
        {"seed": 1},
        {"max_tokens": 5},
        {"tools": []},
        {"n": 2},
        {"response_format": {"type": "json_object"}},
    ],
)
def test_what_changes_an_answer_is_another_question(fields: dict[str, object]) -> None:
    assert asked(**fields).key != asked().key


@pytest.mark.parametrize(
    "fields", [{"stream": True}, {"user": "me"}, {"stream": True, "stream_options": {"include_usage": True}}]
)
def test_how_it_is_answered_is_no_part_of_a_question(fields: dict[str, object]) -> None:
    assert asked(**fields).key == asked().key


def test_a_tenant_a_version_and_a_route_have_their_own_answers() -> None:
    keys = {
        found.key
        for tenant in ("a", "b", 'a","x')
        for version in ("x", "y")
        for route in ("chat", "completions")
        if (found := asked_of(tenant, version, route, body())) is not None
    }
    assert len(keys) == 12
    split = {asked_of(*parts, "chat", body()) for parts in (("ab", "c"), ("a", "bc"))}
    assert len(split) == 2


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b'"a"', b"\xff", b'{"a":' * 5000, b'{"a":"\xed\xa0\x80"}']
)
def test_a_body_that_is_no_table_has_no_answer(text: bytes) -> None:
    assert asked_of("acme", "x", "chat", text) is None


def test_the_header_says_what_a_cache_may_do() -> None:
    assert [wish_of(text) for text in ("", "no-cache", "max-age=0", "no-store", "private")] == [
        USUAL, REFRESH, REFRESH, BYPASS, USUAL,
    ]  # fmt: skip


def test_an_answer_is_given_in_the_manner_that_is_asked_for() -> None:
    cache = ExactCache(Bounds())
    first = kept_stream("acme", "chat", USAGE, STREAM)
    assert first is not None
    assert cache.put(asked(), first, NOW)
    streaming, used = asked(stream=True), asked(stream=True, stream_options={"include_usage": True})
    for manner, expected in ((used, STREAM), (streaming, STREAM.replace(USED, b""))):
        found = cache.get(manner, NOW)
        assert found is first
        assert cache.answer(manner, found) == expected
    before = cache.size_bytes
    whole = cache.answer(asked(), first)
    assert b"Paris." in whole
    assert cache.size_bytes == before + len(whole) == first.size_bytes
    assert cache.forget("acme") == 1
    assert (cache.size_bytes, len(cache)) == (0, 0)


def test_an_answer_that_grows_beyond_the_bounds_goes() -> None:
    kept = kept_stream("acme", "chat", USAGE, STREAM)
    assert kept is not None
    cache = ExactCache(Bounds(most_bytes=kept.size_bytes + 10))
    cache.put(asked(), kept, NOW)
    assert b"Paris." in cache.answer(asked(), kept)
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_an_answer_is_stale_after_its_time() -> None:
    cache = ExactCache(Bounds(ttl_s=10.0))
    cache.put(named("a"), one(), NOW)
    assert cache.get(named("a"), NOW + 10 * 10**9 - 1)
    assert cache.get(named("a"), NOW + 10 * 10**9) is None
    assert (cache.counts.hits, cache.counts.misses, cache.counts.expired, len(cache)) == (1, 1, 1, 0)


def test_one_tenant_cannot_push_out_all_others() -> None:
    size = 100 + OVERHEAD_BYTES
    cache = ExactCache(Bounds(most_bytes=10 * size, tenant_bytes=3 * size))
    cache.put(named("a", "quiet"), one(tenant="quiet"), NOW)
    for number in range(50):
        cache.put(named(str(number), "loud"), one(tenant="loud"), NOW)
    assert cache.get(named("a", "quiet"), NOW)
    assert len(cache) == 4


def test_an_answer_that_is_kept_again_counts_once() -> None:
    cache, kept = ExactCache(Bounds()), one()
    for _ in range(3):
        cache.put(named("a"), kept, NOW)
    assert cache.size_bytes == kept.size_bytes


def test_an_answer_that_is_too_large_is_not_kept() -> None:
    assert not ExactCache(Bounds(answer_bytes=50)).put(named("a"), one(), NOW)
    assert not ExactCache(Bounds(most_bytes=50)).put(named("a"), one(), NOW)


def test_a_long_body_is_known_by_its_keys_and_how_they_are_written() -> None:
    long = b"x" * MOST_SORTED_BYTES

    def asked(text: bytes) -> Asked:
        found = asked_of("acme", "small@1", "chat", text % long)
        assert found is not None
        return found

    plain = asked(b'{"messages":[{"content":"%b"}],"n":1}')
    streamed = asked(
        b'{"stream_options":{"include_usage":true},"stream":true,"n":1,"messages":[{"content":"%b"}]}'
    )
    assert plain.key == streamed.key
    assert (plain.streams, streamed.streams, streamed.with_usage) == (False, True, True)
    assert asked(b'{"messages":[{"content":"%by"}],"n":1}').key != plain.key
    assert asked(b'{"messages":[{"content":"%b"}],"n":2}').key != plain.key


operations = st.lists(
    st.tuples(st.booleans(), st.sampled_from("abcdef"), st.sampled_from(("x", "y")), st.integers(0, 900)),
    max_size=60,
)


@given(operations)
def test_the_least_recently_used_go_first(steps: list[tuple[bool, str, str, int]]) -> None:
    """Against a list in the order of use, walked anew each time."""
    most, share = 4000, 2500
    cache = ExactCache(Bounds(most_bytes=most, tenant_bytes=share))
    order: OrderedDict[tuple[str, str], int] = OrderedDict()
    for writes, name, tenant, size in steps:
        if writes:
            assert cache.put(named(name, tenant), one(size, tenant), NOW)
            order.pop((tenant, name), None)
            order[tenant, name] = size + OVERHEAD_BYTES
            while sum(some for (whose, _), some in order.items() if whose == tenant) > share:
                del order[next(key for key in order if key[0] == tenant)]
            while sum(order.values()) > most:
                order.popitem(last=False)
        else:
            assert (cache.get(named(name, tenant), NOW) is not None) == ((tenant, name) in order)
            if (tenant, name) in order:
                order.move_to_end((tenant, name))
        assert (cache.size_bytes, len(cache)) == (sum(order.values()), len(order))
