"""TorchScript, where PyTorch is installed: 0.2 GB that the other tests do without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.serve.modelserver.models import ask, opener, run

from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.runners.open import opened
from datahall.serve.modelserver.shelf import Shelf

torch = pytest.importorskip("torch", reason="the CPU build of PyTorch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


class Two(torch.nn.Module):
    """Two inputs, two outputs."""

    def forward(self, left, right):  # type: ignore[no-untyped-def]
        return left + right, left - right


def saved(module: torch.nn.Module, file: Path) -> Path:
    torch.jit.script(module).save(str(file))
    return file


def test_the_labs_model_answers_as_torch_itself(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    file = saved(module, tmp_path / "model.pt")
    features = [0.5, -1.0, 2.0, 0.0]

    async def main() -> None:
        shelf = Shelf()
        await shelf.load("model", opener(file))
        status, said = await ask(ModelServer(shelf, "model", "1"), "/predict", {"features": features})
        assert status == 200
        with torch.no_grad():
            expected = module(torch.FloatTensor([features])).numpy().tolist()[0]
        assert said["prediction"] == pytest.approx(expected, rel=1e-5)
        status, said = await ask(ModelServer(shelf, "model", "1"), "/predict", {"features": [1.0]})
        assert status == 500  # the file does not say how many features it takes
        await shelf.close()

    run(main)


def test_inputs_and_outputs_by_the_names_of_forward(tmp_path: Path) -> None:
    model = opened(str(saved(Two(), tmp_path / "two.pt")))
    assert [one.name for one in model.inputs] == ["left", "right"]
    outputs = model.run({"left": np.ones((2, 3), np.float32), "right": np.zeros((2, 3), np.float32)})
    assert list(outputs) == ["prediction", "output_1"]
    assert outputs["output_1"].tolist() == [[1.0] * 3] * 2
