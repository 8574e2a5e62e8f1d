"""The page for whoever is on call: a process of its own that only reads a run's folder. No heavy imports here."""
