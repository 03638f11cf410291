"""How a model is spread over chips for training: one layout, or a whole space of them as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.model import Model
from datahall.errors import ScenarioError
from datahall.workload.activation import Recompute
from datahall.workload.sharding import Sharding

Column = NDArray[np.float64]
RECOMPUTES: tuple[Recompute, ...] = ("none", "selective", "full")


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Degrees of parallelism, micro-batch and what is recomputed; data parallelism takes the chips left over."""

    tp: int = 1
    pp: int = 1
    vpp: int = 1  # virtual stages on each chip
    cp: int = 1
    ep: int = 1
    dp: int = 1
    zero: int = 1  # 0 none, 1 optimizer, 2 and gradients, 3 and parameters (FSDP)
    micro_batch: int = 1
    recompute: Recompute = "none"
    sequence_parallel: bool = True

    @property
    def num_chips(self) -> int:
        return self.tp * self.pp * self.cp * self.dp

    @property
    def words(self) -> str:
        """The layout as a person writes it, without what is 1.

        >>> Layout(tp=4, pp=8, vpp=6, dp=16).words
        'tp 4, pp 8 × 6, dp 16, zero 1, mb 1'
        """
        stages = f"pp {self.pp} × {self.vpp}" if self.vpp > 1 else f"pp {self.pp}"
        degrees = {f"tp {self.tp}": self.tp, stages: self.pp, f"cp {self.cp}": self.cp}
        degrees |= {f"ep {self.ep}": self.ep, f"dp {self.dp}": self.dp}
        said = [text for text, value in degrees.items() if value > 1]
        said += [f"zero {self.zero}"] if self.dp * self.cp > 1 else []
        said += [f"mb {self.micro_batch}"]
        said += [f"recompute {self.recompute}"] if self.recompute != "none" else []
        return ", ".join(said)

    def check(self, model: Model, num_chips: int, global_batch: int) -> None:
        """Refuse a layout that cannot run: which rule, the value, and the nearest legal ones."""
        whole = {"tp": self.tp, "pp": self.pp, "vpp": self.vpp, "cp": self.cp, "ep": self.ep, "dp": self.dp}
        for name, value in (whole | {"micro_batch": self.micro_batch}).items():
            if value < 1:
                raise ScenarioError(f"{name} is {value}; it must be at least 1")
        if self.zero not in (0, 1, 2, 3):
            raise ScenarioError(f"zero is {self.zero}; it must be 0, 1, 2 or 3")
        if self.num_chips != num_chips:
            group = self.tp * self.pp * self.cp
            raise ScenarioError(
                f"tp {self.tp} × pp {self.pp} × cp {self.cp} × dp {self.dp} is {self.num_chips:,} chips, "
                f"not {num_chips:,}",
                hint=f"dp {num_chips // group} would fit"
                if num_chips % group == 0
                else _divisors_hint("tp·pp·cp", num_chips, group),
            )
        _divides("tp", self.tp, "attention heads", model.num_heads)
        if self.ep > 1 and model.moe is None:
            raise ScenarioError(
                f"ep is {self.ep}, but {model.title or model.name} has no experts", hint="ep 1"
            )
        _divides("ep", self.ep, "experts", model.moe.num_experts if model.moe else 1)
        _divides("ep", self.ep, "chips of a stage", self.tp * self.cp * self.dp)
        Sharding(tp=float(self.tp), ep=float(self.ep)).check(model)
        stages = self.pp * self.vpp
        most = model.num_layers + 2  # embedding and head may take a place: Llama 3 put 126 layers on 16 × 8
        if stages > most:
            raise ScenarioError(
                f"{self.pp} stages of {self.vpp} chunks are {stages}, "
                f"but {model.title or model.name} has {model.num_layers} layers",
                hint=f"pp · vpp of at most {most}",
            )
        if self.pp > model.num_layers:
            raise ScenarioError(
                f"pp {self.pp} leaves {self.pp - model.num_layers} stages without a layer",
                hint=f"pp of at most {model.num_layers}",
            )
        if self.vpp > 1 and self.pp == 1:
            raise ScenarioError(
                f"vpp is {self.vpp}, but one stage has nothing to interleave", hint="vpp 1, or pp 2 and more"
            )
        _divides("vpp", self.vpp, "layers of a stage", ceil(model.num_layers / self.pp))
        _divides(
            "dp · micro_batch", self.dp * self.micro_batch, "sequences of the global batch", global_batch
        )
        num_micro = global_batch // (self.dp * self.micro_batch)
        if self.vpp > 1 and num_micro % self.pp:
            raise ScenarioError(
                f"interleaved stages need micro-batches in multiples of pp {self.pp}; there are {num_micro}",
                hint="vpp 1, or a global batch that divides",
            )


def _divides(name: str, value: int, what: str, total: int) -> None:
    if total % value:
        raise ScenarioError(
            f"{name} {value} does not divide {total:,} {what}", hint=_divisors_hint(name, total, value)
        )


def _divisors_hint(name: str, total: int, value: int) -> str:
    divisors = [number for number in range(1, total + 1) if total % number == 0] if total < 10**6 else [1]
    below = max((one for one in divisors if one <= value), default=1)
    above = min((one for one in divisors if one >= value), default=below)
    return f"nearest for {name}: {below}" + (f" or {above}" if above != below else "")


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """Many layouts as columns of equal length."""

    tp: Column
    pp: Column
    vpp: Column
    cp: Column
    ep: Column
    dp: Column
    zero: Column
    micro_batch: Column
    recompute: NDArray[np.int8]  # index into RECOMPUTES
    sequence_parallel: NDArray[np.bool_]

    def __len__(self) -> int:
        return int(self.tp.size)

    @classmethod
    def of(cls, layouts: Layout | Sequence[Layout]) -> Space:
        """The columns of some layouts."""
        rows = [layouts] if isinstance(layouts, Layout) else list(layouts)

        def column(name: str) -> Column:
            return np.array([getattr(row, name) for row in rows], dtype=np.float64)

        names = ("tp", "pp", "vpp", "cp", "ep", "dp", "zero", "micro_batch")
        return cls(
            **{name: column(name) for name in names},
            recompute=np.array([RECOMPUTES.index(row.recompute) for row in rows], dtype=np.int8),
            sequence_parallel=np.array([row.sequence_parallel for row in rows]),
        )

    def row(self, index: int) -> Layout:
        """One layout of the space."""
        names = ("tp", "pp", "vpp", "cp", "ep", "dp", "zero", "micro_batch")
        return Layout(
            **{name: int(getattr(self, name)[index]) for name in names},
            recompute=RECOMPUTES[int(self.recompute[index])],
            sequence_parallel=bool(self.sequence_parallel[index]),
        )

    def keep(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> Space:
        """The rows a mask or index selects."""
        return Space(**{name: getattr(self, name)[mask] for name in self.__struct_fields__})


def unique_rows(columns: Iterable[NDArray[np.generic]]) -> tuple[Column, NDArray[np.intp]]:
    """Distinct rows of some columns in order, and for each row the index of its distinct one.

    Columns of a space hold few small whole numbers, so each is looked up in a table instead of sorted.

    >>> distinct, index = unique_rows((np.array([2.0, 1.0, 2.0]), np.array([8.0, 4.0, 8.0])))
    >>> distinct.tolist(), index.tolist()
    ([[1.0, 4.0], [2.0, 8.0]], [1, 0, 1])
    """
    levels, codes = zip(*(_coded(np.asarray(column, dtype=np.float64)) for column in columns), strict=True)
    key = np.zeros(codes[0].size, dtype=np.int64)
    for values, code in zip(levels, codes, strict=True):
        key = key * max(1, values.size) + code
    found, index = _coded(key.astype(np.float64))
    places = np.zeros((len(levels), found.size), dtype=np.int64)
    rest = found.astype(np.int64)
    for place in range(len(levels) - 1, -1, -1):
        rest, places[place] = np.divmod(rest, max(1, levels[place].size))
    distinct = np.stack([values[places[at]] for at, values in enumerate(levels)], axis=1)
    return distinct, index


LARGEST_TABLE = 2**22


def _coded(column: Column) -> tuple[Column, NDArray[np.intp]]:
    """Distinct values in order, and for each row the place of its own."""
    whole = column.astype(np.int64)
    if column.size and whole.min() >= 0 and whole.max() < LARGEST_TABLE and bool((whole == column).all()):
        seen = np.zeros(int(whole.max()) + 1, dtype=np.bool_)
        seen[whole] = True
        place = np.cumsum(seen, dtype=np.intp) - 1
        return np.flatnonzero(seen).astype(np.float64), place[whole]
    values, index = np.unique(column, return_inverse=True)
    return values, np.ravel(index)
