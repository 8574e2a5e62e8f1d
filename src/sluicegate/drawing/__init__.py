"""Where the boxes and arrows of a pipeline lie, for every picture of it."""
