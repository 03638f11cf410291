"""Hot loops compiled with numba, imported only when one runs and cached on disk.

A kernel is one plain Python function.  Small work runs it as it is, so a single question never pays for
loading a compiler; large work runs the compiled form of the same source.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("datahall")


class Kernel(Generic[P, R]):
    """A function over arrays that can run interpreted or compiled.

    >>> def total(values: list[float]) -> float:
    ...     return sum(values)
    >>> Kernel(total).interpreted([1.0, 2.0])
    3.0
    """

    def __init__(self, function: Callable[P, R], *, compile_s: float = 3.0) -> None:
        self.interpreted = function
        self.compile_s = compile_s
        self._machine_code: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._machine_code is None:
            self._machine_code = self._compile()
        return self._machine_code(*args, **kwargs)

    def _compile(self) -> Callable[P, R]:
        folder = cache_folder()
        import numba

        numba.config.CACHE_DIR = str(folder)
        name = self.interpreted.__qualname__
        if not any(folder.rglob(f"*.{name}-*.nbi")):
            log.info("compiling %s for this machine, once: about %.0f s", name, self.compile_s)
        machine_code: Callable[P, R] = numba.njit(cache=True, fastmath=False)(self.interpreted)
        return machine_code


def cache_folder() -> Path:
    """The folder for compiled code: the user's cache, or a private temporary one where that is read-only."""
    wanted = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(wanted) / "datahall"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="datahall-"))
