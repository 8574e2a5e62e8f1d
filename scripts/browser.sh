#!/usr/bin/env bash
# Tests of what people see need a real Chromium. Install Debian's where that is possible; say so plainly where not.
set -uo pipefail

command -v chromium >/dev/null 2>&1 && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "sluicegate: installing chromium for the browser tests"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; } \
        >/dev/null 2>&1
fi
command -v chromium >/dev/null 2>&1 ||
    echo "sluicegate: no chromium here, so the browser tests are left out (Debian: apt-get install chromium)"
