#!/bin/sh
# random_graphs.t - pipelines drawn from the grammar of what runs hold what every one must.
# usage: tests/random_graphs.t [PROGRAM [OPTION...]]; see random_graphs.py. A long run:
#     tests/random_graphs.t build/release/tectum --virtual 10000 --real 500
cd "$(dirname "$0")/.." || exit 1
T=${1:-${TECTUM:-}}
[ $# -eq 0 ] || shift
[ -n "$T" ] || for T in build/release/tectum build/*/tectum; do [ -x "$T" ] && break; done
if [ ! -x "$T" ]; then echo "1..0 # SKIP no program: give one as an argument"; exit 0; fi
if ! command -v python3 >/dev/null; then echo "1..0 # SKIP no python3"; exit 0; fi
exec python3 tests/random_graphs.py "$T" "$@"
