"""What one failed part takes down, how often and for how long, part by part of a fabric."""
