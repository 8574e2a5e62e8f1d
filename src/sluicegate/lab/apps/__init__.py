"""Applications in plain PySpark, each with an input generator and a right answer computed without Spark."""
