"""What plans say of power: the sections of a training run and of a service."""
