"""Part of a double: see README.md."""
