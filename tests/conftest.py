from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

# Compiled code is slow the first time it runs, so no deadline; the same examples on every run, so that a red test is
# the change's doing and not the dice's.
settings.register_profile("headgate", deadline=None, derandomize=True)
settings.load_profile("headgate")


@pytest.fixture(autouse=True, scope="session")
def a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs and clusters of the tests are not those of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADGATE_HOME", str(tmp_path_factory.mktemp("home")))
        yield
