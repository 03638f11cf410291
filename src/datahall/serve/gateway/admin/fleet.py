"""The upstreams and models of a gateway, and what becomes of them when its file is read anew.

What the file says as before stays as it is, with its connections, its line and its breaker.  What is other or gone
answers whom it has let in, and then is let go of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random

from datahall.errors import ServingError
from datahall.serve.config.settings import Settings
from datahall.serve.gateway.admin.described import Reloaded
from datahall.serve.gateway.build import build_model, build_models, build_upstream, close_all, headers_of
from datahall.serve.gateway.model import Model
from datahall.serve.http import Handler
from datahall.serve.http.deadlines import Deadlines
from datahall.serve.upstreams.probe import watch
from datahall.serve.upstreams.upstream import Upstream

LOOK_S = 0.5  # until who was let go of is looked at again
AT_THE_START = ("server", "admin", "telemetry", "cache")  # tables that are read then alone


class Fleet:
    """Who answers for what, now and until they have answered."""

    def __init__(self, settings: Settings, random: Random, handlers: Mapping[str, Handler]) -> None:
        self.settings = settings
        self._random = random
        self.models, self.upstreams = build_models(settings, random, handlers)  # lists that metrics read
        self._gone: list[Upstream] = []
        self._partings: set[asyncio.Task[None]] = set()
        self._asking = asyncio.ensure_future(watch(self.upstreams))

    def change(self, settings: Settings) -> Reloaded:
        """Be what another reading of the file says, or raise with nothing changed."""
        was = self.settings
        self._refuse(settings)
        upstreams = self._upstreams(settings)
        models = self._models(settings, upstreams)
        told = Reloaded(
            upstreams=_other(self._by_name(), upstreams),
            models=_other({model.name: model for model in self.models}, models),
            customers=_other(was.customers, settings.customers),
        )
        gone = [one for one in self.upstreams if upstreams.get(one.name) is not one]
        for model in self.models:
            if models.get(model.name) is not model:
                model.pool.retire()
        self.models[:], self.upstreams[:] = models.values(), upstreams.values()
        self.settings = settings
        self._asking.cancel()
        self._asking = asyncio.ensure_future(watch([*self.upstreams]))
        for one in gone:
            self._gone.append(one)
            task = asyncio.ensure_future(self._part(one))
            self._partings.add(task)
            task.add_done_callback(self._partings.discard)
        return told

    def close(self) -> None:
        """Let go of every connection."""
        self._asking.cancel()
        for task in self._partings:
            task.cancel()
        close_all([*self.upstreams, *self._gone])

    def _refuse(self, settings: Settings) -> None:
        was = self.settings
        other = [name for name in AT_THE_START if getattr(was, name) != getattr(settings, name)]
        if other:
            raise ServingError(
                f"{', '.join(f'[{name}]' for name in other)} of the file is other than at the start, when it is read",
                hint="restart the gateway, or put it back; nothing has been changed",
            )
        files = [{one for one in some.upstreams if one.file} for some in (was, settings)]
        if files[0] != files[1]:
            raise ServingError(
                "models of files are loaded at the start alone",
                hint="restart the gateway; nothing has been changed",
            )

    def _by_name(self) -> dict[str, Upstream]:
        return {one.name: one for one in self.upstreams}

    def _upstreams(self, settings: Settings) -> dict[str, Upstream]:
        """Those of a reading: as they are where it says nothing else, and no secret is another by now."""
        there = self._by_name()
        before = {one.name: one for one in self.settings.upstreams}
        deadlines = Deadlines(asyncio.get_running_loop())
        found = {}
        for one in settings.upstreams:
            known = there.get(one.name)
            if known is not None and before.get(one.name) == one and known.headers == headers_of(one):
                found[one.name] = known
            else:
                found[one.name] = build_upstream(one, self._random, deadlines)
                found[one.name].is_drained = known is not None and known.is_drained
        return found

    def _models(self, settings: Settings, upstreams: Mapping[str, Upstream]) -> dict[str, Model]:
        before = {one.name: one for one in self.settings.models}
        there = {model.name: model for model in self.models}
        found = {}
        for one in settings.models:
            known = there.get(one.name)
            is_as_before = (
                known is not None
                and before.get(one.name) == one
                and all(upstreams[target.upstream.name] is target.upstream for target in known.pool.targets)
            )
            found[one.name] = known if known is not None and is_as_before else build_model(one, upstreams)
        return found

    async def _part(self, one: Upstream) -> None:
        """Close an upstream that nothing new is sent to, when what is there has ended."""
        while one.num_open or one.on_room:
            await asyncio.sleep(LOOK_S)
        one.reach.close()
        self._gone.remove(one)


def _other(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[str, ...]:
    """Names of what is new, other or gone."""
    return tuple(sorted(name for name in {**before, **after} if before.get(name) != after.get(name)))
