"""A broker by hand: ``python tests/kafka/broker.py DIR PORT``, until Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path

from sluicegate.lab.chaos.broker import Broker


def main() -> None:
    broker = Broker(Path(sys.argv[1]), int(sys.argv[2]))
    broker.up()
    sys.stdout.write(f"Kafka at {broker.address}, process {broker.process.pid if broker.process else '-'}\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()
    broker.down()


if __name__ == "__main__":
    main()
