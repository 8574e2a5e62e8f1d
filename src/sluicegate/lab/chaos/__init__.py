"""Fault injection into a running pipeline or attached query, and a check that its result is still exact."""
