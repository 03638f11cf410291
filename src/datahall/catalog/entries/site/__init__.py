"""What stands between a grid and racks: grids, buildings, ways to cool, batteries and capacitors."""
