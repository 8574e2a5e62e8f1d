"""Known vulnerabilities of what requirements.lock names, by pip-audit.

It needs a network: CI asks it in a job of its own, no test does.

    python scripts/audit.py

Exits with 1 where one is known, with 3 where the index did not answer for every package: what was not looked up is not
said to be sound.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements.lock"


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", "-r", str(LOCK), "--disable-pip", "--require-hashes"]
    done = subprocess.run(
        [*command, "--progress-spinner", "off", "--format", "json"], capture_output=True, text=True, check=False
    )
    if not done.stdout.strip().startswith("{"):
        said = done.stderr.strip().splitlines() or ["no reason given"]
        sys.stderr.write(f"audit: nothing was looked up: {said[-1]}\n")
        return 3
    packages = json.loads(done.stdout)["dependencies"]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    known = [(one["name"], one["version"], vuln["id"]) for one in packages for vuln in one.get("vulns", ())]
    for name, version, number in known:
        sys.stdout.write(f"{name} {version}: {number}\n")
    asked = len(packages) - len(skipped)
    sys.stdout.write(f"{asked} of {len(packages)} packages looked up, {len(known)} known vulnerabilities\n")
    if skipped:
        sys.stderr.write(f"audit: the index did not answer for {len(skipped)} packages, such as {skipped[0]}\n")
    return 1 if known else 3 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
