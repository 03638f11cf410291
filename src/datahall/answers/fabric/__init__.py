"""Fabrics, collectives and flow simulations in words, tables and charts."""
