"""Capacity measured on Spark: what an operator does with tau tasks in one slot, and what an application sustains."""
