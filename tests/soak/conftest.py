"""The options of campaigns."""

import pytest

from tests.soak.campaign import Campaign
from tests.soak.report import SIZES

QUICK = 0.4  # seconds of each campaign in "make test"
ENOUGH = 500  # trials of a campaign for which no size is aimed at


def pytest_addoption(parser):
    group = parser.getgroup("soak")
    group.addoption("--soak-minutes", type=float, help="minutes of each campaign; counted and kept")
    group.addoption("--soak-complete", action="store_true", help="end at the size aimed at")
    group.addoption("--soak-seed", type=int, help="try this seed only")


@pytest.fixture
def campaign(request):
    """Makes the campaign of a test: ``campaign("name")``."""
    minutes = request.config.getoption("--soak-minutes", None)
    only = request.config.getoption("--soak-seed", None)

    def make(name):
        seconds = QUICK if minutes is None else 60.0 * minutes
        kept = minutes is not None and only is None
        complete = kept and request.config.getoption("--soak-complete", False)
        size = SIZES.get(name, ENOUGH) if complete else None
        return Campaign(name, seconds, kept, only, size)

    return make
