"""Faults on purpose while a pipeline or an attached query runs, and whether its answer is exact all the same."""
