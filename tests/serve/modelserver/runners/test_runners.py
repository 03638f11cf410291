"""Models as their makers left them: what is opened, by what, and what is refused with the way out."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.serve.modelserver.models import WEIGHTS, linear

from datahall.errors import ScenarioError
from datahall.serve.modelserver.runners.open import check, opened

ROWS = np.array([[1, 2, 3], [0, 0, 1]], np.float32)


class Tripled:
    """What a pickle holds."""

    def predict(self, rows: object) -> object:
        return 3 * rows  # type: ignore[operator]


def test_onnx_says_what_it_takes(tmp_path: Path) -> None:
    model = opened(str(linear(tmp_path)))
    assert model.run({"x": ROWS})["y"] == pytest.approx(ROWS @ WEIGHTS)
    assert [(one.name, one.datatype, one.shape) for one in model.inputs] == [("x", "FP32", (-1, 3))]
    assert model.has_rows
    assert not opened(str(linear(tmp_path, rows=2))).has_rows
    doubles = opened(str(linear(tmp_path, element=TensorProto.DOUBLE)))
    assert doubles.inputs[0].datatype == "FP64"


def test_a_python_function_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "rank.py"
    file.write_text("def predict(rows): return 2 * rows\ndef score(rows): return rows.sum(axis=1)\n")
    assert opened(str(file)).run({"features": ROWS})["prediction"].tolist() == (2 * ROWS).tolist()
    assert opened(f"{file}:score").run({"features": ROWS})["prediction"].tolist() == [6, 1]
    with pytest.raises(ScenarioError, match="no function sort") as refused:
        opened(f"{file}:sort")
    assert f"{file}:predict" in refused.value.hint


@pytest.mark.parametrize("text", ["def", "import nowhere_at_all", "1/0", "raise SystemExit(3)"])
def test_a_python_file_that_breaks_is_said_to(tmp_path: Path, text: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)
    with pytest.raises(ScenarioError, match="cannot be loaded"):
        opened(str(file))


def test_a_pickle_is_opened_where_it_is_allowed_by_name(tmp_path: Path) -> None:
    file = tmp_path / "tree.pkl"
    file.write_bytes(pickle.dumps(Tripled()))
    with pytest.raises(ScenarioError, match="runs whatever code"):
        opened(str(file))
    with pytest.raises(ScenarioError, match="runs whatever code"):
        opened(str(file), ("other.pkl",))
    assert (
        opened(str(file), ("tree.pkl",)).run({"features": ROWS})["prediction"].tolist() == (3 * ROWS).tolist()
    )
    file.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(ScenarioError, match="a list, which has no predict"):
        opened(str(file), ("tree.pkl",))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.onnx", b"", "cannot be loaded"),
        ("a.onnx", b"\x08\x07garbage", "cannot be loaded"),
        ("a.pt", b"garbage", "not TorchScript"),
        ("a.txt", b"", "no model that is served has this ending"),
        ("a", b"", "no model that is served has this ending"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ScenarioError, match=message):
        opened(str(file))


def test_no_file_and_a_folder_are_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(ScenarioError, match="there is no file"):
            check(str(path))


def test_weights_that_torch_saved_are_a_pickle_and_refused(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("weights/data.pkl", b"")
    with pytest.raises(ScenarioError, match="pickle of weights") as refused:
        opened(str(file))
    assert "torch.jit.script" in refused.value.hint


def test_an_onnx_model_that_answers_maps_is_refused_with_the_way_out(tmp_path: Path) -> None:
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", 3]))
    graph = helper.make_graph(
        [helper.make_node("SequenceConstruct", ["x"], ["y"])],
        "sequence",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_value_info("y", sequence)],
    )
    file = tmp_path / "sequence.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), file)
    with pytest.raises(ScenarioError, match="no request can carry"):
        opened(str(file))
