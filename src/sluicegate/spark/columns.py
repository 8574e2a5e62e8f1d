"""Columns by their exact names, whatever characters these have."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def column(name: str) -> Column:
    """The column of this name; in Spark's own notation dots and backticks would mean something else."""
    escaped = name.replace("`", "``")
    return F.col(f"`{escaped}`")
