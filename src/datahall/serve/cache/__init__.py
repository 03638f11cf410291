"""Answers that were given before, given again to the same tenant: exact, bounded by bytes, streamed or whole alike.

The key of an answer has its tenant in it, so that no other can ever be given it.
"""
