"""Models that answer in process: requests of many clients laid into batches, and a small language model.

A model is a runner (a Python function, ONNX, TorchScript) behind a batcher; versions of it are swapped without losing
a request.  Each API is a handler over `Exchange`: the lab's `/predict`, the Open Inference Protocol, OpenAI's chat.
"""
