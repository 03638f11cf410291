"""A choice of a training layout has one name: as declared, in a layout, in a column and among a plan's options."""

import msgspec
import pytest

from datahall.scenario.field import fields
from datahall.scenario.sections.training import TrainingLayout
from datahall.training.layout.asked import INPUTS, layout_inputs, named_layout
from datahall.training.layout.columns import CODES, CUT, NUMBERS, Space
from datahall.training.layout.layout import Layout
from datahall.training.layout.space import WEIGHED, Options

# said of a layout and no part of one: a file that holds one, and the order of the pipeline's work
BESIDE = {"file", "schedule"}
# of a layout, and nobody's input: frameworks switch it on with tensor parallelism
IMPLIED = {"sequence_parallel"}
OTHER = Layout(
    tp=2, pp=3, vpp=4, cp=5, ep=6, dp=7, zero=3, micro_batch=8, recompute="selective", sequence_parallel=False,
    etp=9, shard=10, context_exchange="all-to-all", split=(1, 2), modules=("mlp",), offload=("optimizer:nvme",),
    compression="fp8",
)  # fmt: skip


def test_every_input_is_a_field_of_a_layout_and_every_field_an_input() -> None:
    declared = {one.attribute for one in fields("layout")} - BESIDE
    assert declared == set(INPUTS) == set(Layout.__struct_fields__) - IMPLIED


def test_every_field_is_a_column_either_of_numbers_or_with_a_code() -> None:
    assert {*NUMBERS, *CODES, CUT} == set(Layout.__struct_fields__)
    assert set(Space.__struct_fields__) == {*Layout.__struct_fields__, "splits"}
    assert len(NUMBERS) + len(CODES) + 1 == len(Layout.__struct_fields__)


def test_what_a_plan_weighs_are_fields_of_a_layout() -> None:
    assert set(WEIGHED) <= set(Layout.__struct_fields__)
    assert set(Options.__struct_fields__) - set(WEIGHED) == {
        "sequence_parallel", "sharded_pipeline", "margin_fraction",
    }  # fmt: skip


@pytest.mark.parametrize("name", Layout.__struct_fields__)
def test_no_field_is_the_usual_one_in_the_layout_that_is_tried(name: str) -> None:
    assert getattr(OTHER, name) != getattr(Layout(), name)


@pytest.mark.parametrize("name", Layout.__struct_fields__)
def test_columns_keep_every_field(name: str) -> None:
    one = msgspec.structs.replace(Layout(), **{name: getattr(OTHER, name)})
    assert Space.of([Layout(), one, OTHER]).row(1) == one
    assert Space.of([Layout(), one, OTHER]).keep([2, 0]).row(0) == OTHER  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_an_input_becomes_a_layout_and_is_said_again(name: str) -> None:
    value = getattr(OTHER, name)
    found = named_layout(Layout(), TrainingLayout(**{name: value}))
    assert getattr(found, name) == value
    again = layout_inputs(found)
    if name == "dp":  # takes the chips left over
        assert again == {}
    else:
        assert again[INPUTS[name]] == (list(value) if isinstance(value, tuple) else value)
