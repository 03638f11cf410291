"""A virtual engine that runs, from what it is told to a signal."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from datahall.inference.fleet.fleet import Fleet
from datahall.serve.ending import serve_until_told
from datahall.serve.http import serve
from datahall.serve.http.browsers import guarded
from datahall.serve.virtual.app import VirtualServer
from datahall.serve.virtual.course import Course
from datahall.serve.virtual.engine import Engine

GRACE_S = 30.0
WARM_SLOTS = 8


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What is served where, and how fast time passes in it."""

    fleet: Fleet
    name: str
    host: str
    port: int
    usual_output: int
    speed_ratio: float = 1.0


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever started it wants to know."""

    url: str
    name: str
    num_replicas: int
    num_chips: int
    speed_ratio: float


async def run_virtual(told: Told, when_ready: Callable[[Running], None]) -> bool:
    """Serve until SIGTERM or SIGINT; whether every request had ended within the grace."""
    warm_up(told.fleet)
    course = Course(told.fleet)
    engine = Engine(course, usual_output=told.usual_output, speed_ratio=told.speed_ratio)
    server = await serve(guarded(VirtualServer(engine, told.name), told.host), (told.host, told.port))
    host = f"[{told.host}]" if ":" in told.host else told.host
    running = Running(
        url=f"http://{host}:{server.port}",
        name=told.name,
        num_replicas=told.fleet.num_replicas,
        num_chips=told.fleet.num_chips,
        speed_ratio=told.speed_ratio,
    )
    try:
        return await serve_until_told(server, GRACE_S, when_ready=lambda: when_ready(running))
    finally:
        engine.close()


def warm_up(fleet: Fleet) -> None:
    """Let a request come that nobody sent, as the first takes twelve milliseconds more than any other."""
    Course(fleet, num_slots=WARM_SLOTS).arrive(0.0, 1, 1)
