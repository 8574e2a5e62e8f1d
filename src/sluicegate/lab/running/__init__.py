"""Runs an application on Spark from the first row to the checked answer."""
