"""What runs: a transformer as operators with arithmetic and traffic, and the memory that it needs.

Everything is plain arithmetic over numbers or NumPy columns and knows nothing of hardware.
"""
