"""Bytes that a model needs: parameters and their state, saved activations, caches."""
