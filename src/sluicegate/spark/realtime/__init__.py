"""A pipeline as one real-time query of Spark: its operators are stages of long-lived tasks that each hold a slot."""
