"""`sluicegate chaos`: an application under random faults, and whether its answer is exact all the same."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from sluicegate.cli.checked_options import the_rate
from sluicegate.cli.out import console, print_json
from sluicegate.config.typed import duration_s, executors_from
from sluicegate.errors import BadInput, EnvironmentLacks

if TYPE_CHECKING:
    from sluicegate.lab.chaos.network import Namespaces
    from sluicegate.lab.chaos.verdict import ChaosVerdict
    from sluicegate.spark.cluster.standalone import Cluster

_NODE_COMES_WITHIN_S = 300.0
_NETWORK = "netns"
_NODES, _CORES = 2, 2


def chaos(
    app: Annotated[
        str,
        typer.Argument(
            metavar="APP",
            help="An application, postgres, a file that defines app, or attach:QUERY: counts, first, windows, kafka.",
        ),
    ],
    length: Annotated[
        str, typer.Option("--seconds", metavar="S", help="How long faults are injected: 120, 10min.")
    ] = "60",
    seed: Annotated[int, typer.Option(min=0, help="The same seed: the same faults in the same order.")] = 0,
    faults: Annotated[str, typer.Option(metavar="A,B", help="Which kinds, or all.")] = "all",
    master: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="local[N], cluster (of `sluicegate cluster up`), or netns: two nodes that can be cut off (root).",
        ),
    ] = "local[4]",
    executors: Annotated[
        str | None, typer.Option(metavar="LEAST:MOST", help="Least and most executors (on a cluster).")
    ] = None,
    calm_per_s: Annotated[float | None, typer.Option("--rate", help="Rows a second outside the peak.")] = None,
    most: Annotated[int | None, typer.Option(min=1, help="At most this many faults.")] = None,
    disk_mb: Annotated[
        int | None,
        typer.Option("--disk", min=16, metavar="MB", help="Run on a disk of this size and fill it (needs root)."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A new folder to keep (default: a temporary one, kept if it fails)."),
    ] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Kill, stop and corrupt parts of a running application at random, and compare its result with the right one."""
    from sluicegate.lab.chaos.attached import PREFIX, attached_chaos, attached_faults
    from sluicegate.lab.chaos.faults import chosen
    from sluicegate.lab.chaos.queries import kind_named
    from sluicegate.lab.chaos.run import Asked
    from sluicegate.lab.chaos.run import chaos as under_faults

    seconds = duration_s(length)
    if not seconds > 0:
        raise BadInput(f"--seconds is {length}: give a time above 0, such as 60 or 10min")
    if calm_per_s is not None:
        the_rate(calm_per_s)
    if executors is not None:
        executors_from(executors)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file: give a folder of its own")
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty: chaos needs a folder of its own")
    out = None if json_out else Console(stderr=True, highlight=False)

    def progress(line: str) -> None:
        if out is not None:
            out.print(escape(line), soft_wrap=True)

    if app.startswith(PREFIX):
        if not master.startswith("local"):
            raise BadInput(f"--master is {master}: faults of attached queries are for local[N]")
        query = app.removeprefix(PREFIX)
        kind_named(query)
        wanted = attached_faults(faults)
        with _home(folder) as home:
            verdict = attached_chaos(query, seconds, seed, wanted, home, master, most, progress)
        return _tell(_document(app, seed, master, verdict), verdict, home, folder is None, json_out)
    kinds = chosen(faults, cluster=not master.startswith("local"), network=master == _NETWORK)
    with _cluster(master) as (where, cluster, network), _home(folder) as home:
        asked = Asked(app, seconds, seed, kinds, where, executors or "", calm_per_s, most, cluster, disk_mb, network)
        verdict = under_faults(asked, home, progress)
    return _tell(_document(app, seed, master, verdict), verdict, home, folder is None, json_out)


@contextmanager
def _home(folder: Path | None) -> Iterator[Path]:
    """The given folder, or a temporary one, which is deleted after Ctrl-C, or if an error leaves it empty."""
    home = folder or Path(tempfile.mkdtemp(prefix="sluicegate-chaos-"))
    try:
        yield home
    except KeyboardInterrupt:
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)
        raise
    except BaseException:
        with suppress(OSError):
            home.rmdir()  # only if it is empty
        raise


def _tell(document: dict[str, object], verdict: ChaosVerdict, home: Path, temporary: bool, json_out: bool) -> int:
    if verdict.good and temporary:
        shutil.rmtree(home, ignore_errors=True)
    if json_out:
        print_json(document)
    else:
        _show(document, verdict, home)
    return 0 if verdict.good else 1


def _document(app: str, seed: int, master: str, verdict: ChaosVerdict) -> dict[str, object]:
    """The JSON of the command-line contract."""
    return {
        "app": app,
        "seed": seed,
        "master": master,
        "faults": [asdict(one) for one in verdict.faults],
        "rows_in": verdict.rows_in,
        "lost": verdict.lost,
        "duplicated": verdict.duplicated,
        "wrong_keys": verdict.wrong_keys,
        "answer_exact": verdict.exact,
        "answer_note": verdict.note,
        "broken": list(verdict.broken),
        "starts": verdict.starts,
        "rescales": verdict.moves,
    }


@contextmanager
def _cluster(master: str) -> Iterator[tuple[str, Cluster | None, Namespaces | None]]:
    """The master as drivers name it, its cluster and its network, as far as it has them."""
    from sluicegate.lab.chaos.network import own_network
    from sluicegate.spark.cluster.standalone import Cluster
    from sluicegate.spark.cluster.state import default_folder

    if master == _NETWORK:
        with tempfile.TemporaryDirectory(prefix="sluicegate-netns-") as home, own_network() as network:
            cluster = Cluster(Path(home) / "cluster", _NODE_COMES_WITHIN_S, network)
            try:
                cluster.up(_NODES, cores=_CORES)
                yield f"cluster:{cluster.folder}", cluster, network
            finally:
                cluster.down()
        return
    name, colon, given = master.partition(":")
    if name != "cluster":
        yield master, None, None
        return
    # killed nodes come again on a machine that is busy with what the faults before them left
    cluster = Cluster(Path(given) if colon else default_folder(), patience_s=_NODE_COMES_WITHIN_S)
    if cluster.status() is None:
        raise EnvironmentLacks("no cluster runs here: start one with `sluicegate cluster up --workers 2`")
    yield master, cluster, None


def _show(document: Mapping[str, object], verdict: ChaosVerdict, home: Path) -> None:
    out = console()
    missing = [one for one in verdict.faults if one.recovered_s is None]
    told = "exact" if verdict.exact else f"[red]WRONG[/red] ({escape(verdict.note)})"
    out.print(
        f"{len(verdict.faults)} faults, {len(missing)} not recovered from; {verdict.rows_in:,} rows in; the answer is "
        f"{told}: {verdict.lost} lost, {verdict.duplicated} doubled, {verdict.wrong_keys} wrong keys"
    )
    for line in verdict.broken:
        out.print(f"[red]broken[/red]: {escape(line)}")
    if not verdict.good:
        out.print(f"kept in {home}; play it again: sluicegate chaos {document['app']} --seed {document['seed']}")
