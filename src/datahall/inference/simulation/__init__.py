"""A fleet under requests, event by event, in compiled loops."""
