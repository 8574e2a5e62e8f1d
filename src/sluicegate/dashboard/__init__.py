"""The dashboard: a web page served by a process of its own that only reads a run's folder. No heavy imports here."""
