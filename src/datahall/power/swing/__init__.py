"""The power of a synchronised step over time: its waveform, swing, ramp and spectrum, and what smooths it."""
