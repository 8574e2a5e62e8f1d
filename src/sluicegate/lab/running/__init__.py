"""An application on Spark from the first row to the checked answer, and how well it was predicted."""
