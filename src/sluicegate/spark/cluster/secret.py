"""Creates and reads the secret of a cluster, which allows running code as the owner, so only the owner may read it.

It is kept in a properties file (0600) that daemons read themselves and applications get with ``spark-submit
--properties-file``; it is never on a command line, which other users can list. Every start of a master makes a new one.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.files import read_if_there, write_whole

_FILE = "spark.properties"
_SECRET = "spark.authenticate.secret"
_WRITABLE_BY_OTHERS = 0o022


def properties_file(folder: Path) -> Path:
    """The file that other applications pass to spark-submit as ``--properties-file``."""
    return folder.resolve() / _FILE


def new_secret(folder: Path) -> None:
    """Make a secret for a cluster that is about to start in ``folder``."""
    _require_own(folder)
    secret = secrets.token_hex(32)
    settings = {
        "spark.authenticate": "true",
        _SECRET: secret,
        # Traffic between processes is encrypted with keys derived from the secret.
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.authEngineVersion": "2",
        # Web pages have a separate password: a process that takes over the port of an ended page learns only that one.
        "spark.sluicegate.OwnerPages.param.password": hashlib.sha256(f"pages {secret}".encode()).hexdigest(),
    }
    write_whole(properties_file(folder), "".join(f"{key} {value}\n" for key, value in settings.items()))


def forget_secret(folder: Path) -> None:
    """Remove the secret of a cluster that has ended."""
    properties_file(folder).unlink(missing_ok=True)


def application_settings(folder: Path) -> Mapping[str, str]:
    """The settings an application needs to authenticate with the cluster."""
    return {key: value for key, value in _read(folder).items() if not key.startswith("spark.sluicegate.")}


def page_password(folder: Path) -> str:
    """The password of the web pages of master and workers."""
    return _read(folder)["spark.sluicegate.OwnerPages.param.password"]


def _read(folder: Path) -> dict[str, str]:
    try:
        text = read_if_there(properties_file(folder))
    except OSError as problem:
        raise EnvironmentLacks(f"the cluster in {folder} is not yours ({problem.strerror}): start one") from None
    if text is None:
        raise EnvironmentLacks(f"the cluster in {folder} has no {_FILE}: run `sluicegate cluster down`, then `up`")
    return dict(line.split(" ", 1) for line in text.splitlines())


def _require_own(folder: Path) -> None:
    """Refuse a folder that other users can write to: they could put their own secret there."""
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS:
        raise BadInput(f"{folder} can be written by other users, who could then run code as you: choose another folder")
