"""Model weights on this host: which there are, where they come from, and how they get here. No Django."""
