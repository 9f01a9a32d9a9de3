"""A corpus that is spoken on the spot."""
