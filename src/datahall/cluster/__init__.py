"""Chip, host, scale-up domain, NIC and fabric together as one machine, which a layout or a replica stands on."""
