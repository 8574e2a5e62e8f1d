"""The documentation as a site: `make docs` writes it to out/docs. Warnings are errors, so links are checked."""

from __future__ import annotations

project = "sluicegate"
copyright = "the sluicegate authors, Apache-2.0"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["kubernetes/*"]
# GitHub's anchors, so that a link works on the site and in the repository
myst_heading_anchors = 4
html_theme = "furo"
html_title = "sluicegate"
html_show_sphinx = False
html_copy_source = False
