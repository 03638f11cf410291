"""Networks: links, switches, cables, transports, the time to go around what fails, and fabrics that were built."""
