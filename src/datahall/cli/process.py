"""A process that answers one question and ends: what usual settings, made for long ones, would cost it."""

from __future__ import annotations

import gc
import os
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of mallopt, in malloc.h of the GNU C library
KEPT_BYTES, OWN_PAGES_BYTES = 1 << 30, 1 << 25  # the second as large as the library lets it be
OBJECTS_BEFORE_COLLECTING = 100_000
OBJECTS_OF_A_QUESTION = 300_000  # a plan makes a third of that, all of which it keeps


def settle() -> None:
    """Before NumPy is loaded: no pool of threads for products of matrices, of which we make none that need one."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(OBJECTS_BEFORE_COLLECTING, *gc.get_threshold()[1:])


def leave() -> None:
    """Before the process ends, whose memory is given back as a whole: no last search for what refers to itself."""
    gc.freeze()


def keep_memory() -> None:
    """Keep what one question makes, and the pages of arrays that are freed: the next column takes them as they are.

    The GNU C library gives them back at once, and the kernel clears them again; other libraries are left alone.
    """
    gc.set_threshold(OBJECTS_OF_A_QUESTION, *gc.get_threshold()[1:])
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(MMAP_THRESHOLD, OWN_PAGES_BYTES)
