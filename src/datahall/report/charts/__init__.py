"""The charts of an answer as SVG: `chart` has what all share and finds who draws one, and each kind has a file."""
