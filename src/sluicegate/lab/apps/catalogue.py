"""All applications by name."""

from __future__ import annotations

from difflib import get_close_matches

from sluicegate.errors import BadInput
from sluicegate.lab.apps import (
    chain,
    commodity_count,
    data_clean,
    dataflows,
    finance,
    flight_distances,
    fpd,
    grep,
    grid,
    hashtags,
    page_view,
    rolling_count,
    shop,
    top_n,
    traffic,
    unique_visitor,
    vht,
    vld,
    wordcount,
)
from sluicegate.lab.running.app import App

APPS: dict[str, App] = {
    app.name: app
    for app in (
        wordcount.APP,
        chain.APP,
        top_n.APP,
        shop.APP,
        fpd.APP,
        fpd.WAITING,
        *dataflows.APPS,
        commodity_count.APP,
        grep.APP,
        rolling_count.APP,
        unique_visitor.APP,
        page_view.APP,
        data_clean.APP,
        hashtags.APP,
        vld.APP,
        vld.WAITING,
        vht.APP,
        traffic.APP,
        finance.APP,
        grid.APP,
        flight_distances.APP,
    )
}


def app_named(name: str) -> App:
    """
    >>> app_named("wordcount").slo
    'mean=3s'
    """
    if name in APPS:
        return APPS[name]
    close = get_close_matches(name, APPS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there is {', '.join(APPS)}, or give a file such as app.py"
    raise BadInput(f"no application {name!r}: {hint}")
