"""All that is told of requests, in one place: metrics at once, log and traces in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event, Thread

from datahall.serve.telemetry.instruments import Instruments
from datahall.serve.telemetry.log import Log
from datahall.serve.telemetry.metrics import Family, Read
from datahall.serve.telemetry.otlp import Exporter
from datahall.serve.telemetry.told import Told

EVERY_S = 0.5
STOP_S = 5.0  # that the end waits for what is being sent


class Telemetry:
    """Where whoever answers requests tells of each that is over."""

    def __init__(
        self, log: Log | None = None, exporter: Exporter | None = None, readings: Iterable[Family] = ()
    ) -> None:
        self.instruments = Instruments()
        self.instruments.families += [
            *readings,
            Read(
                "datahall_telemetry_lost_total",
                "Lines and spans that nobody took.",
                self._lost,
                ("of",),
                "counter",
            ),
        ]
        self._log, self._exporter = log, exporter
        self._threads = [
            Repeated(one.flush, name) for one, name in ((log, "log"), (exporter, "traces")) if one is not None
        ]

    def tell(self, told: Told) -> None:
        """Say that a request is over."""
        self.instruments.count(told)
        if self._log is not None:
            self._log.add(told)
        if self._exporter is not None:
            self._exporter.add(told)

    def stop(self) -> None:
        """Write and send what waits."""
        for thread in self._threads:
            thread.stop()
        if self._log is not None:
            self._log.finish()

    def _lost(self) -> Iterable[tuple[tuple[str, ...], float]]:
        if self._log is not None:
            yield ("log",), self._log.num_lost
        if self._exporter is not None:
            yield ("traces",), self._exporter.num_dropped


class Repeated:
    """A piece of work that a thread does again and again, and once more at the end."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._work = work
        self._stop = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Do it a last time."""
        self._stop.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            self._work()
        self._work()
