"""What a transport makes of a network: one message, many at once, a receiver that stops, a packet that is lost.

The network is the same for all of them, with the same ports and cables; what differs is what the catalogue says of each
transport.  `fabric/flows/congestion.py` has the same effects for flows that are simulated one by one.
"""
