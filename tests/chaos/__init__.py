"""A whole pool under customers and a nemesis, and a checker of what is left: `make chaos`."""
