"""A plan of a service as launch commands, a manifest or an application."""
