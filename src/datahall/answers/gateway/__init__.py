"""Keys of a gateway, and what it and they have used."""
