"""What plans say of storage: the sections of a training run and of a service."""
