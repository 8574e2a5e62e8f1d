"""Applications as ordinary PySpark: each with a generator of its input and an answer computed without Spark."""
