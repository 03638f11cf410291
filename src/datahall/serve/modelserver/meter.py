"""What a batcher counts: batches by the reason of their release, their sizes, how long requests waited and ran."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

WAITS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
REASONS = ("full", "idle", "due", "isolated")


class Histogram:
    """Counts below bounds, and the sum, as Prometheus has them."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value among those that are at most their bound.

        >>> sizes = Histogram((1, 2, 4))
        >>> for rows in (1, 2, 3, 9):
        ...     sizes.observe(rows)
        >>> sizes.counts
        [1, 1, 1, 1]
        """
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def num(self) -> int:
        """How many values were counted."""
        return sum(self.counts)

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """The histogram in the text format of Prometheus."""
        bounds = (*(f"{bound:g}" for bound in self.bounds), "+Inf")
        for bound, count in zip(bounds, accumulate(self.counts), strict=True):
            yield f'{name}_bucket{{{labels},le="{bound}"}} {count}'
        yield f"{name}_sum{{{labels}}} {self.total:.9g}"
        yield f"{name}_count{{{labels}}} {self.num}"


class Meter:
    """The counters of one version of a model; written on the event loop alone."""

    def __init__(self) -> None:
        self.released = dict.fromkeys(REASONS, 0)
        self.rows = Histogram(ROWS)
        self.wait_s = Histogram(WAITS_S)
        self.run_s = Histogram(WAITS_S)
        self.num_failed = 0
        self.num_refused = 0
        self.num_cancelled = 0


# name without the prefix, type, help
FAMILIES = (
    ("batches_total", "counter", "Batches run, by why they were released."),
    ("batch_rows", "histogram", "Rows of a batch."),
    ("queue_seconds", "histogram", "How long a request waited for its batch."),
    ("run_seconds", "histogram", "How long a batch ran."),
    ("failed_total", "counter", "Requests that the model failed on."),
    ("refused_total", "counter", "Requests refused because the queue was full."),
    ("cancelled_total", "counter", "Requests whose client left before their batch ran."),
    ("queued_rows", "gauge", "Rows that wait for a batch."),
)


def labels(**values: str) -> str:
    """Labels of a sample, with what would end a text taken out of the way.

    >>> labels(model='a"b')
    'model="a\\\\"b"'
    """
    escaped = {name: value.replace("\\", r"\\").replace('"', r"\"") for name, value in values.items()}
    return ",".join(f'{name}="{value}"' for name, value in escaped.items())


def exposition(meters: Sequence[tuple[str, Meter, int]]) -> str:
    """Labels, counters and queued rows of every loaded version, in the text format of Prometheus."""
    text = []
    for family, kind, words in FAMILIES:
        name = f"datahall_model_{family}"
        text += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        for tags, meter, queued in meters:
            text += _samples(family, name, tags, meter, queued)
    return "\n".join(text) + "\n"


def _samples(family: str, name: str, labels: str, meter: Meter, queued: int) -> Iterator[str]:
    histograms = {"batch_rows": meter.rows, "queue_seconds": meter.wait_s, "run_seconds": meter.run_s}
    single = {
        "failed_total": meter.num_failed,
        "refused_total": meter.num_refused,
        "cancelled_total": meter.num_cancelled,
        "queued_rows": queued,
    }
    if family in histograms:
        yield from histograms[family].lines(name, labels)
    elif family in single:
        yield f"{name}{{{labels}}} {single[family]}"
    else:
        yield from (f'{name}{{{labels},reason="{why}"}} {num}' for why, num in meter.released.items())
