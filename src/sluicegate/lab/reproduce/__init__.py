"""Recomputes the tables and figures of each paper and compares them with the paper's numbers."""
