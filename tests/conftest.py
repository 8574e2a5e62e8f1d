from __future__ import annotations

from hypothesis import settings

# Compiled code is slow the first time it runs, so no deadline; the same examples on every run, so that a red test is
# the change's doing and not the dice's.
settings.register_profile("headgate", deadline=None, derandomize=True)
settings.load_profile("headgate")
