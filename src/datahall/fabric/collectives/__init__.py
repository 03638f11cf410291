"""Collectives: published algorithms as pure functions, and what NCCL and its kin make of them on a real machine.

`choose_collective` (`choice.py`) answers one question on a `System`; `collective_times` does it for whole columns of
sizes.
"""
