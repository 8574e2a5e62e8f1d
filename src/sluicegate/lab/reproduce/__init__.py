"""Each paper's tables and figures, computed anew and held next to the paper's own numbers."""
