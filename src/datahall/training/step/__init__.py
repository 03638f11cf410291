"""The time of one training step in closed form: kernels of a micro-batch, exchange, the framework around them."""
