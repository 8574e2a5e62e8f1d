"""Elastic pipelines on Spark Structured Streaming."""
