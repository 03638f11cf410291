"""What runs a model: a Python function, ONNX, TorchScript."""
