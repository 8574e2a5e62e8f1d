"""Edges: durable, replayable logs between operators. No heavy imports here: Spark's Python workers load these files."""
