#!/usr/bin/env bash
# Prepare the virtual environment $1 with exactly the packages of requirements.lock.
set -euo pipefail
venv=$1

fail() { echo "sluicegate: $1" >&2; exit 3; }

python=
for candidate in "${PYTHON:-}" python3.13 python3.12 python3.11 python3 python; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 || continue
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    found=$(python3 --version 2>/dev/null | head -1) || true
    fail "Python 3.11 to 3.13 is needed, found ${found:-none}: install it (Debian: apt-get install python3 python3-venv) or set PYTHON"
fi

java=java
[ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ] && java=$JAVA_HOME/bin/java
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1) || true
if [ -z "$version" ]; then
    fail "Java 17 is needed, found none: install it (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
elif [ "$version" -lt 17 ]; then
    fail "Java 17 or newer is needed, found $version: install it (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
fi

"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "Python's venv module is missing: install it (Debian: apt-get install python3-venv)"

# `make demo` and `make test` may be started side by side: the second waits, and finds all done
mkdir -p "$venv"
if command -v flock >/dev/null 2>&1; then
    exec 9>"$venv/.lock"
    flock 9
    newest=$(ls -t "$venv/.ready" requirements.lock pyproject.toml "$0" 2>/dev/null | head -1) || true
    [ "$newest" = "$venv/.ready" ] && exit 0
fi

echo "sluicegate: preparing $venv with $("$python" --version) (a minute or two the first time)"
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
touch "$venv/.ready"
