"""Layout of the boxes and arrows of a pipeline, for every picture of it."""
