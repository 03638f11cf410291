"""The models that are loaded, by name and version; versions come and go while requests run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from datahall.serve.modelserver.batcher import Batching
from datahall.serve.modelserver.meter import exposition, labels
from datahall.serve.modelserver.refused import UnknownModel
from datahall.serve.modelserver.runners.runner import Runner
from datahall.serve.modelserver.version import Version


class Shelf:
    """Each name leads to one version, the last that was loaded; others answer who asks for them by number."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[str, Version]] = {}

    def __iter__(self) -> Iterator[Version]:
        return (version for versions in self._versions.values() for version in versions.values())

    def get(self, name: str, version: str = "") -> Version:
        """The version that answers now.  Between this and `submit` nothing may be awaited."""
        versions = self._versions.get(name)
        if not versions:
            raise UnknownModel(name)
        if not version:
            return next(reversed(versions.values()))
        if version not in versions:
            raise UnknownModel(name, version)
        return versions[version]

    def versions_of(self, name: str) -> list[str]:
        """Versions of a model, oldest first."""
        return list(self._versions.get(name, ()))

    async def load(
        self, name: str, opened: Callable[[], Runner], *, version: str = "1", batching: Batching | None = None
    ) -> Version:
        """Open a model outside the loop and warm it up; from then on its name leads to it."""
        runner = await asyncio.get_running_loop().run_in_executor(None, opened)
        loaded = Version(name, version, runner, _fitting(batching or Batching(), runner))
        await loaded.warm_up()
        versions = self._versions.setdefault(name, {})
        replaced = versions.pop(version, None)
        versions[version] = loaded
        if replaced is not None:
            await replaced.close()
        return loaded

    async def swap(
        self, name: str, opened: Callable[[], Runner], *, version: str, batching: Batching | None = None
    ) -> Version:
        """Load a version, and let go of all others once they have answered what they took."""
        loaded = await self.load(name, opened, version=version, batching=batching)
        for other in self.versions_of(name):
            if other != version:
                await self.unload(name, other)
        return loaded

    async def unload(self, name: str, version: str = "") -> None:
        """Take nothing more for a model, or for one version of it, and answer what is queued."""
        self.get(name, version)
        going = [version] if version else self.versions_of(name)
        leaving = [self._versions[name].pop(one) for one in going]
        if not self._versions[name]:
            del self._versions[name]
        await asyncio.gather(*(one.close() for one in leaving))

    async def close(self) -> None:
        """Let go of everything."""
        for name in list(self._versions):
            await self.unload(name)

    def metrics(self) -> str:
        """Counters of all versions in the text format of Prometheus."""
        return exposition(
            [
                (labels(model=one.name, version=one.version), one.batcher.meter, one.batcher.num_queued)
                for one in self
            ]
        )


def _fitting(batching: Batching, runner: Runner) -> Batching:
    """A model whose calls take no rows runs one request a call."""
    if runner.has_rows:
        return batching
    return Batching(most_rows=1, num_workers=batching.num_workers, most_queued=batching.most_queued)
