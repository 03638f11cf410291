"""What the catalogue has entries of: chips, links, servers, switches, cables, fabrics, models, offers, API prices."""
