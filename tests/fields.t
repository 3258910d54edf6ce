#!/bin/sh
# fields.t - every field of a pipeline file has a reader: fields.py changes each and looks for a
# difference. usage: tests/fields.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
cd "$(dirname "$0")/.." || exit 1
T=${1:-${TECTUM:-}}
[ -n "$T" ] || for T in build/release/tectum build/*/tectum; do [ -x "$T" ] && break; done
if [ ! -x "$T" ]; then echo "1..0 # SKIP no program: give one as an argument"; exit 0; fi
if ! command -v python3 >/dev/null; then echo "1..0 # SKIP no python3"; exit 0; fi
exec python3 tests/fields.py "$T"
