"""A plan of a training run as arguments, job files and a batch script."""
