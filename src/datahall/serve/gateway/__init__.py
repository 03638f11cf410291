"""The way of a request, from its key to its bill: `way.py` has all of it, the other files its parts."""
