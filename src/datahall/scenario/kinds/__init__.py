"""Kinds of input: how each is read from what a person wrote, bounded, written back and described."""

from datahall.scenario.kinds.changes import Axes, Axis, Change
from datahall.scenario.kinds.fabrics import Ratios, Sides, Topology, Version
from datahall.scenario.kinds.kind import Kind, Plain, Raw, Reading, key_of, shown
from datahall.scenario.kinds.lists import Listed, Mapped, Numbers, inline_table, listed
from datahall.scenario.kinds.numbers import (
    LARGEST,
    LARGEST_OF,
    Count,
    Percentile,
    Quantity,
    Rate,
    Share,
    bounded,
    exact,
    parsed,
    whole_or_float,
)
from datahall.scenario.kinds.stock import Stock
from datahall.scenario.kinds.texts import Choice, File, Flag, Name, Text, unknown_name

__all__ = [
    "LARGEST",
    "LARGEST_OF",
    "Axes",
    "Axis",
    "Change",
    "Choice",
    "Count",
    "File",
    "Flag",
    "Kind",
    "Listed",
    "Mapped",
    "Name",
    "Numbers",
    "Percentile",
    "Plain",
    "Quantity",
    "Rate",
    "Ratios",
    "Raw",
    "Reading",
    "Share",
    "Sides",
    "Stock",
    "Text",
    "Topology",
    "Version",
    "bounded",
    "exact",
    "inline_table",
    "key_of",
    "listed",
    "parsed",
    "shown",
    "unknown_name",
    "whole_or_float",
]
