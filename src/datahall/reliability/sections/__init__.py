"""What plans say of failures: the sections of a training run and of a service."""
