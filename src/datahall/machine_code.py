"""Machine code that runs without the compiler that made it: loading numba takes longer than most questions do.

A compiled function takes its arguments as words, as numba lays them out: a number is one word, a tuple the words of its
parts, an array its owner (none here, twice), size, item size, address, shape and strides.  It returns a status, and
its result and its error through pointers.
"""

from __future__ import annotations

import ctypes
import logging
import os
import pickle
import platform
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

log = logging.getLogger(__name__)

Word = int | float | None
FLAGS = 0x001 | 0x100 | 0x400  # of an array: C order, aligned, may be written
C_ORDER = 0x001
OK = (0, -2)  # a status; the second: returned None
RESULTS: dict[str, type[Any]] = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "none": ctypes.c_void_p}


class NotBare(TypeError):
    """A function that needs numba while it runs."""


class Code(NamedTuple):
    """Machine code as it is kept: its object file, its name in there, and what it returns."""

    object_file: bytes
    symbol: str
    result: str


class Raised(ctypes.Structure):
    """How a compiled function says what it raises: a pickle of class, arguments and place."""

    _fields_ = (("pickled", ctypes.c_void_p), ("size", ctypes.c_int32))


def address_of(array: np.ndarray) -> int:
    """Where the values of an array lie: the first field of the object, as NumPy's C interface lays it out.

    `array.ctypes.data` says the same in eight times the time, which is most of what a short call takes.
    """
    return ctypes.c_void_p.from_address(id(array) + object.__basicsize__).value or 0


def flatten(values: tuple[Any, ...], words: list[Word], kinds: list[Any]) -> None:
    """Write down the words of arguments, and what code for them depends on.

    >>> words, kinds = [], []
    >>> flatten((1.5, np.zeros((2, 3))), words, kinds)
    >>> words[:5], words[6:], kinds[0]
    ([1.5, None, None, 6, 8], [2, 3, 24, 8], 'float64')
    """
    for value in values:
        if isinstance(value, np.ndarray):
            flags = value.flags.num & FLAGS
            if not flags & C_ORDER:
                raise TypeError("an array in C order is needed")
            kinds.append((value.dtype, value.ndim, flags))
            words += (None, None, value.size, value.itemsize, address_of(value), *value.shape, *value.strides)
        elif isinstance(value, tuple):
            kinds.append((type(value).__name__, len(value)))
            flatten(value, words, kinds)
        elif isinstance(value, float):
            kinds.append("float64")
            words.append(value)
        elif type(value) is int:
            kinds.append("int64")
            words.append(value)
        else:
            raise TypeError(f"{type(value).__name__}: arrays, floats, ints and tuples of them are needed")


def runnable(code: Code, words: list[Word]) -> Callable[[list[Word]], Any]:
    """The function behind machine code, for arguments of the kind of these words."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _any_processor())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.object_file))
    engine.finalize_object()
    types = [ctypes.c_double if isinstance(word, float) else ctypes.c_void_p for word in words]
    called = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *types)(
        engine.get_function_address(code.symbol)
    )
    result_type = RESULTS[code.result]

    def run(words: list[Word], _keeps_it_loaded: object = engine) -> Any:
        result, raised = result_type(), ctypes.POINTER(Raised)()
        if called(ctypes.addressof(result), ctypes.addressof(raised), *words) not in OK:
            error, arguments, *_ = pickle.loads(
                ctypes.string_at(raised.contents.pickled, raised.contents.size)
            )
            raise error(*arguments)
        return result.value

    return run


def _any_processor() -> Any:
    """What makes code for every processor of this architecture: it can be shipped, and adds alike everywhere.

    The loops are branches and loads: made for the processor at hand they are no faster.
    """
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(reloc="pic", jit=True)


def compile_code(function: Callable[..., object], arguments: tuple[Any, ...], num_words: int) -> Code:
    """Compile for arguments like these; the code needs nothing but the C library."""
    import numba

    options: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiler: Any = numba.njit(fastmath=False, **options)(function)
    made = compiler._compiler.compile(tuple(map(numba.typeof, arguments)), None)
    needed = [part.name for part in made.library._final_module.functions if part.is_declaration]
    foreign = [name for name in needed if name.startswith(("numba", "NRT", "Py"))]
    laid_out = made.target_context.get_arg_packer(made.fndesc.argtypes)._be_args
    if len(laid_out) != num_words:
        raise TypeError(f"{function.__qualname__}: {num_words} words, and numba lays out {len(laid_out)}")
    if foreign:
        raise NotBare(f"{function.__qualname__} makes arrays or calls Python: {', '.join(foreign)}")
    code = _any_processor().emit_object(made.library._final_module.clone())
    return Code(bytes(code), made.fndesc.llvm_func_name, str(made.signature.return_type))


def host() -> str:
    """What machine code depends on beside its source: the system, the architecture, and how words are laid out."""
    return f"{sys.platform} {platform.machine()} {zlib.crc32(Path(__file__).read_bytes())}"


def keep(code: Code, path: Path) -> None:
    """Write machine code to a file, all of it or nothing; where there is no room it is compiled again next time."""
    data = msgspec.msgpack.encode(code)
    part = path.with_suffix(f".{os.getpid()}")
    try:
        part.write_bytes(zlib.crc32(data).to_bytes(4, "big") + data)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        log.info("machine code is not kept: %s", error)


def kept(path: Path) -> Code | None:
    """Machine code from its file; None where there is none, or a broken one."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if zlib.crc32(data[4:]).to_bytes(4, "big") != data[:4]:
        return None
    try:
        return msgspec.msgpack.decode(data[4:], type=Code)
    except msgspec.DecodeError:
        return None
