#!/usr/bin/env bash
# Build src/sluicegate/spark/jvm/sluicegate.jar from the Java files beside it. Needs a JDK; only for those who change them.
set -euo pipefail
cd "$(dirname "$0")/.."
jvm=src/sluicegate/spark/jvm
jars=$(.venv/bin/python -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / "jars")')
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
javac --release 17 -nowarn -cp "$jars/*" -d "$build" $(find "$jvm" -name "*.java" | sort)
# a fixed date, so that the same classes give the same file
jar --create --file "$build/sluicegate.jar" --no-manifest --date=2026-01-01T00:00:00Z -C "$build" sluicegate
# renamed into place: a running Spark keeps the one that it has open
cp "$build/sluicegate.jar" "$jvm/.sluicegate.jar"
mv "$jvm/.sluicegate.jar" "$jvm/sluicegate.jar"
echo "$jvm/sluicegate.jar"
