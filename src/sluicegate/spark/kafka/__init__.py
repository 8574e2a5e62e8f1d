"""Kafka sources, edges and sinks: the connector, topic offsets, and arrival times of rows."""
