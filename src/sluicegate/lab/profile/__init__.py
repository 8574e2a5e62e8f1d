"""Measures capacity on Spark: rate of an operator with tau tasks in one slot, sustainable rate of an application."""
