"""Kafka as a source: its connector, how far its topics have come, and when their rows came in."""
