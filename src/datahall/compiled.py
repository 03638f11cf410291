"""Hot loops compiled with numba, imported only when one runs and cached on disk.

A kernel is one plain Python function.  Small work runs it as it is, so a single question never pays for
loading a compiler; large work runs the compiled form of the same source.  A function marked `inline` is one
that kernels call: Python calls it as it is, and each kernel compiles it into itself.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

from datahall.machine_code import Code, NotBare, Word, compile_code, flatten, host, keep, kept, runnable

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., object])

log = logging.getLogger("datahall")

INLINE = "__datahall_inline__"
REGISTERED = "__datahall_registered__"
BEGAN_S = time.time()  # when this process did, for code that is kept must be that of the files that name it
SHIPPED = Path(__file__).parent / "shipped"  # machine code that came with the wheel


def inline(function: F) -> F:
    """Mark a plain function that kernels may call; it stays the plain function that it is."""
    setattr(function, INLINE, True)
    return function


class Kernel(Generic[P, R]):
    """A function over arrays that can run interpreted or compiled.

    It may call `inline` functions.

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
        return self.machine_code(*args, **kwargs)

    @property
    def machine_code(self) -> Callable[P, R]:
        """The compiled function, made on first use."""
        if self._machine_code is None:
            self._machine_code = self._compile()
        return self._machine_code

    @property
    def is_as_written(self) -> bool:
        """Whether no file that it stands in was changed since this process began: its code is that of the files.

        A file from the future is one from a machine with another clock.
        """
        functions = [self.interpreted, *inlined_in(self.interpreted)]
        files = {Path(part.__code__.co_filename) for part in functions if isinstance(part, FunctionType)}
        written_s = [file.stat().st_mtime for file in files if file.is_file()]
        return not any(BEGAN_S <= at_s <= time.time() for at_s in written_s)

    @property
    def stamp(self) -> int:
        """Changes with the files that this kernel and its parts stand in, and with the numbers that they name."""
        own = self.interpreted
        assert isinstance(own, FunctionType)
        functions = [own, *inlined_in(own)]
        stamp = zlib.crc32(repr([_named_numbers(part) for part in functions]).encode())
        for source in sorted({part.__code__.co_filename for part in functions}, key=os.path.basename):
            if Path(source).is_file():
                stamp = zlib.crc32(Path(source).read_bytes(), stamp)
            else:
                written = [(part.__code__.co_code, part.__code__.co_consts) for part in functions]
                stamp = zlib.crc32(repr(written).encode(), stamp)
        return stamp

    def _compile(self) -> Callable[P, R]:
        folder = cache_folder() / f"{self.stamp:08x}"  # numba itself looks at one file only
        import numba

        register(inlined_in(self.interpreted))
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        if not any(folder.rglob(f"*.{self.interpreted.__qualname__}-*.nbi")):
            self._announce()
        at_a_prompt = not Path(self.interpreted.__code__.co_filename).is_file()  # nothing to cache by
        keeps = self.is_as_written and not at_a_prompt
        machine_code: Callable[P, R] = numba.njit(cache=keeps, fastmath=False)(self.interpreted)
        return machine_code

    def _announce(self) -> None:
        name = self.interpreted.__qualname__
        log.info("compiling %s for this machine, once: about %.0f s", name, self.compile_s)


class Bare(Kernel[P, R]):
    """A kernel that makes no arrays and calls no other: its machine code runs without numba being loaded.

    Its arguments are floats, ints, arrays in C order and tuples of these; it returns a number or nothing.  It is
    compiled without reference counts, which took three fifths of the time of a simulation.
    """

    def __init__(self, function: Callable[P, R], *, compile_s: float = 3.0) -> None:
        super().__init__(function, compile_s=compile_s)
        self._by_kind: dict[tuple[object, ...], Callable[[list[Word]], R]] = {}
        self._by_numba = False
        self._num_so_far = 0

    def suited_to(self, num: int, small: int) -> Callable[P, R]:
        """The function for so many pieces of work: interpreted while all so far are few, then machine code."""
        self._num_so_far += num
        return self.interpreted if self._num_so_far < small and not self._by_kind else self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs:
            raise TypeError(f"{', '.join(kwargs)}: by position")
        return self.bound()(*args)

    def bound(self, *first: Any) -> Callable[..., R]:
        """The function with its first arguments written down, to be called again and again with others behind them.

        Arrays among them may be written to, not resized.
        """
        first_words: list[Word] = []
        first_kinds: list[object] = []
        flatten(first, first_words, first_kinds)

        def call(*rest: Any) -> R:
            words, kinds = first_words.copy(), first_kinds.copy()
            flatten(rest, words, kinds)
            return self._run((*first, *rest), words, kinds)

        return call

    def _run(self, args: tuple[Any, ...], words: list[Word], kinds: list[object]) -> R:
        if self._by_numba:
            return self.machine_code(*args)  # type: ignore[call-arg]
        run = self._by_kind.get(tuple(kinds))
        if run is None:
            try:
                run = self._by_kind[tuple(kinds)] = runnable(self._code(args, kinds, words), words)
            except NotBare:
                raise
            except (AttributeError, ImportError, KeyError, RuntimeError, TypeError) as error:
                # How numba lays code out is its own affair: where it does so otherwise, it runs the code itself.
                log.info("%s runs under numba: %s", self.interpreted.__qualname__, error)
                self._by_numba = True
                return self.machine_code(*args)  # type: ignore[call-arg]
        return run(words)

    def _code(self, args: tuple[object, ...], kinds: list[object], words: list[Word]) -> Code:
        key = zlib.crc32(f"{host()} {kinds}".encode())
        name = f"{self.interpreted.__qualname__}-{self.stamp:08x}{key:08x}.code"
        path = cache_folder() / name
        code = kept(SHIPPED / name) or kept(path)
        if code is None:
            self._announce()
            register(inlined_in(self.interpreted))
            code = compile_code(self.interpreted, args, len(words))
            if self.is_as_written:
                keep(code, path)
        return code


def register(parts: list[FunctionType]) -> None:
    """Let numba compile functions into the kernels that call them."""
    from numba.extending import register_jitable

    for part in parts:
        if not hasattr(part, REGISTERED):
            # Not inlined, each call counts references to its arrays: a third of the event queue's speed.
            # Nobody calls it from Python, and to wrap it for that takes a sixth of the time of compiling.
            register_jitable(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(part)
            setattr(part, REGISTERED, True)


def inlined_in(function: Callable[..., object]) -> list[FunctionType]:
    """The `inline` functions that a function calls, and those that they call, each once."""
    found: list[FunctionType] = []
    waiting: list[object] = [function]
    while waiting:
        for part in _called_by(waiting.pop()):
            if part not in found:
                found.append(part)
                waiting.append(part)
    return found


def _called_by(function: object) -> Iterator[FunctionType]:
    if not isinstance(function, FunctionType):
        return
    names = set(_names(function.__code__))
    known = [function.__globals__[name] for name in sorted(names) if name in function.__globals__]
    for module in [value for value in known if isinstance(value, ModuleType)]:
        known.extend(getattr(module, name) for name in sorted(names) if hasattr(module, name))
    yield from (value for value in known if isinstance(value, FunctionType) and hasattr(value, INLINE))


def _named_numbers(function: FunctionType) -> list[tuple[str, object]]:
    """The numbers and words that a function names, which are compiled into it."""
    named = [(name, function.__globals__.get(name)) for name in sorted(set(_names(function.__code__)))]
    return [(name, value) for name, value in named if isinstance(value, int | float | str)]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


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
    return _private_folder(tempfile.gettempdir())


@cache
def _private_folder(within: str) -> Path:
    """A temporary folder that nobody else can write to: the same for all processes of a user, where that can be."""
    if hasattr(os, "getuid"):
        folder = Path(within) / f"datahall-{os.getuid()}"
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
                return folder
    return Path(tempfile.mkdtemp(prefix="datahall-", dir=within))
