"""Servers that answer for us: how each is reached, whether it is well, how busy it is, and which one takes a request.

A model has a pool of targets; a target is an upstream and what the model is called there.
"""
