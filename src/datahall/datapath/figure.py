"""The chain behind a utilisation: what is needed, what each part of the way lets through, and what is waited for."""

from __future__ import annotations

from math import inf

from datahall.breakdown import (
    Breakdown,
    assumed,
    derived,
    difference,
    fact,
    given,
    minimum,
    modelled,
    product,
    quotient,
    total,
)
from datahall.catalog.entries.model import Model
from datahall.catalog.entries.stored.storage import Storage
from datahall.datapath.asked import Asked
from datahall.datapath.benchmark import constants
from datahall.datapath.checkpoint import busy_fraction
from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.stall import utilisation
from datahall.datapath.supply import Supply, reader_time_s

WHOLE = derived("all of their time", 1.0, "fraction", "more than its work a chip cannot do")


def utilisation_figure(asked: Asked, store: Store, found: Supply) -> Breakdown:
    """Utilisation of the chips from one store, down to facts and inputs."""
    name = "utilisation of the chips"
    needed = needed_figure(asked)
    available = _banded(minimum("what comes through", _limits(asked, store, found)))
    job = asked.job
    if not available.value:
        return quotient(name, available, needed, "fraction", "nothing is left to read with")
    step = _step(asked)
    if job.num_prefetch == 0:
        batch = product("bytes of a step", [_chips(job), _batch(asked), _useful(asked)], "bytes")
        fetch = quotient("time to make a batch", batch, available, "s")
        return quotient(name, step, total("step", [step, fetch]), "fraction")
    plain = minimum(
        name, [WHOLE, quotient("what comes through of what is needed", available, needed, "fraction")]
    )
    if found.utilisation_fraction >= plain.value * (1.0 - 1e-12):
        return plain
    prefetch = given("batches ready ahead", job.num_prefetch, "count", field="prefetch_depth")
    spread = derived(
        "variation of the time to make a batch", found.variation, "ratio", "sizes and latencies differ"
    )
    how = "a queue of so many batches, filled in times that vary and emptied at the steps (datapath/stall.py)"
    value, steady = found.utilisation_fraction, plain.named("if times never varied")
    figure = modelled(name, value, "fraction", how, steady, prefetch, spread)
    fetch_s = job.step_s / found.margin_ratio
    low, high = (
        utilisation(job.step_s, fetch_s / ratio, job.num_prefetch, found.variation)
        for ratio in constants().available_ratio
    )
    return figure.with_band(low / value, high / value, available.band.basis if available.band else "")


def _banded(available: Breakdown) -> Breakdown:
    """What comes through, with what runs of the benchmark had of it."""
    fitted = constants()
    basis = f"{fitted.num_available} results of MLPerf Storage against data sheets"
    return available.with_band(*fitted.available_ratio, basis) if available.value else available


def needed_figure(asked: Asked) -> Breakdown:
    """What chips take that never wait."""
    parts = [_chips(asked.job), _batch(asked), _useful(asked)]
    return quotient("what is needed", product("bytes of a step", parts, "bytes"), _step(asked), "bytes_per_s")


def _chips(job: Pipeline) -> Breakdown:
    return given("chips", job.num_chips, "count", field="chips")


def _batch(asked: Asked) -> Breakdown:
    if asked.inputs.batch is not None:
        return given("batch", asked.job.batch, "count", field="batch")
    if asked.model is not None:
        why = "a chip's share of the tokens of a step" if asked.training else "a sequence"
        return given("batch", asked.job.batch, "count", why, "batch")
    return _known(asked, "batch", "batch", "batch", float(asked.job.batch))


def _useful(asked: Asked) -> Breakdown:
    job = asked.job
    sample = (
        given("sample", job.sample_bytes, "bytes", field="sample")
        if asked.inputs.sample_bytes is not None
        else _known(asked, "sample_bytes", "bytes of a sample", "sample", job.sample_bytes)
    )
    if job.columns_fraction == 1.0:
        return sample
    columns = given("columns", job.columns_fraction, "fraction", field="columns")
    return product("bytes of the columns", [sample, columns], "bytes")


def _step(asked: Asked) -> Breakdown:
    job, known = asked.job, asked.dataset.facts.get(f"step.{asked.chip.name}")
    if asked.inputs.step_s is not None:
        return given("step", job.step_s, "s", field="step")
    if asked.model is not None:
        return _trained(asked, asked.model)
    assert known is not None  # it was asked for before
    step = fact("step", known.value, "s", known.source)
    if job.batch == asked.dataset.batch:
        return step
    more = derived("batch over the usual one", job.batch / asked.dataset.batch, "ratio")
    return product("step", [step.named("step of the usual batch"), more], "s")


def _trained(asked: Asked, model: Model) -> Breakdown:
    """The step of a model: on its fastest layout, or at the share of the peak that somebody says."""
    job, training = asked.job, asked.training
    if training is not None:
        how = f"a training step on {training.layout.words}, the fastest layout"
        rate = derived("tokens per second of all chips", training.tokens_per_s, "tokens_per_s", how)
        tokens = product("tokens of a step", [_chips(job), _batch(asked)], "tokens")
        return quotient("step", tokens, rate, "s")
    how = f"batch / (MFU · peak of {asked.chip.name} / FLOP of a token of {model.name})"
    mfu = given("mfu", asked.inputs.mfu_fraction or 0.0, "fraction", field="mfu")
    peak = asked.chip.facts["peak.bf16"]
    return modelled("step", job.step_s, "s", how, mfu, fact("peak", peak.value, peak.unit, peak.source))


def _known(asked: Asked, attribute: str, name: str, field: str, value: float) -> Breakdown:
    known = asked.dataset.facts.get(attribute)
    if known is None:
        return given(name, value, "count", field=field)
    return fact(name, known.value, known.unit, known.source).unless_said(field)


def _limits(asked: Asked, store: Store, found: Supply) -> list[Breakdown]:
    """What each part lets through, of parts that have a limit."""
    made = {
        "bandwidth": _bandwidth(asked, store, found),
        "requests": _requests(asked, store, found),
        "network": _network(asked, found),
        "readers": _readers(asked, store, found),
        "processors": _processors(asked),
    }
    return [made[name] for name, limit in found.limits_bytes_per_s.items() if limit < inf]


def _missed(found: Supply) -> Breakdown:
    return difference(
        "missed by the cache", derived("all reads", 1.0, "fraction"),
        derived("answered by the cache", found.hit_fraction, "fraction", "of an epoch in random order"),
    )  # fmt: skip


def _moved(asked: Asked, found: Supply) -> Breakdown:
    """Bytes that storage reads for each byte that is asked for."""
    reads = asked.job.reads
    pages = derived(
        "bytes read for each that is used", reads.moved_bytes / reads.useful_bytes, "ratio", "whole pages"
    )
    return product("read for each byte used", [pages, _missed(found)], "ratio")


def _free(asked: Asked, store: Store) -> Breakdown:
    busy = busy_fraction(asked.job, store)
    why = "size of a checkpoint / (interval · what can be written)"
    return difference(
        "left by checkpoints", derived("all of its time", 1.0, "fraction"),
        derived("writing checkpoints", busy, "fraction", why),
    )  # fmt: skip


def _units(asked: Asked, store: Store) -> Breakdown:
    units = given("units", store.num_units, "count", field="units")
    if store.storage.is_shared:
        return units
    return product("units of all hosts", [units, _hosts(asked.job)], "count")


def _hosts(job: Pipeline) -> Breakdown:
    per_host = min(job.num_chips, job.num_chips_per_host)
    return derived("chips over those of a host", job.num_chips / per_host, "count")


def _bandwidth(asked: Asked, store: Store, found: Supply) -> Breakdown:
    if store.storage.read_bytes_per_s == inf:
        return assumed("bandwidth", inf, "bytes_per_s", "no limit is published")
    read = _of_storage(store.storage, "read_bytes_per_s", "read of a unit")
    whole = product("of storage", [_units(asked, store), read, _free(asked, store)], "bytes_per_s")
    return quotient("bandwidth", whole, _moved(asked, found), "bytes_per_s")


def _requests(asked: Asked, store: Store, found: Supply) -> Breakdown:
    if not store.storage.num_reads_per_s:
        return assumed("requests", inf, "bytes_per_s", "no limit is published")
    each = _of_storage(store.storage, "num_reads_per_s", "reads per second of a unit")
    whole = product("requests per second", [_units(asked, store), each, _free(asked, store)], "per_s")
    per_sample = derived("requests of a sample", asked.job.reads.requests, "count", asked.job.format)
    need = product("requests per sample", [per_sample, _missed(found)], "count")
    samples = quotient("samples per second", whole, need, "per_s")
    return product("requests", [samples, _useful(asked)], "bytes_per_s")


def _network(asked: Asked, found: Supply) -> Breakdown:
    job = asked.job
    nic = given("host nic", job.nic_bytes_per_s, "bytes_per_s", field="host_nic")
    return quotient(
        "network",
        product("of all hosts", [nic, _hosts(job)], "bytes_per_s"),
        _moved(asked, found),
        "bytes_per_s",
    )


def _readers(asked: Asked, store: Store, found: Supply) -> Breakdown:
    job = asked.job
    busy_s = reader_time_s(job, store, 1.0 - found.hit_fraction)
    how = "prepare + hit · bytes / cache stream + missed · (requests waited for · latency + bytes / stream)"
    each = modelled(
        "time of a reader for a sample", busy_s, "s", how, _useful(asked), _missed(found), *_latency(store)
    )
    number = (
        given("readers", job.num_readers, "count", field="readers")
        if asked.inputs.readers is not None
        else _known(asked, "num_readers", "readers of a chip", "readers", float(job.num_readers))
    )
    rate = quotient(
        "samples per second", product("readers of all chips", [number, _chips(job)], "count"), each, "per_s"
    )
    return product("readers", [rate, _useful(asked)], "bytes_per_s")


def _latency(store: Store) -> list[Breakdown]:
    known = [
        _of_storage(store.storage, attribute, name)
        for attribute, name in (("latency_s", "latency"), ("stream_bytes_per_s", "stream of a reader"))
        if attribute in store.storage.facts
    ]
    return [*known, given("away", store.away_s, "s", field="away")] if store.storage.is_shared else known


def _processors(asked: Asked) -> Breakdown:
    job = asked.job
    if not job.prepare_s:
        return assumed("processors", inf, "bytes_per_s", "nothing is prepared")
    each = given("cores", job.num_cores, "count", field="cores")
    cores = product("cores of all hosts", [each, _hosts(job)], "count")
    rate = quotient(
        "samples per second", cores, given("prepare", job.prepare_s, "s", field="prepare"), "per_s"
    )
    return product("processors", [rate, _useful(asked)], "bytes_per_s")


def _of_storage(storage: Storage, attribute: str, name: str) -> Breakdown:
    known = storage.facts[attribute]
    return fact(name, known.value, known.unit, known.source, note=known.note)
