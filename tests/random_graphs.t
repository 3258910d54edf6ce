#!/bin/sh
# random_graphs.t - pipelines drawn from the grammar of what runs hold what every one must.
# usage: tests/random_graphs.t [PROGRAM [OPTION...]]; see random_graphs.py. A long run:
#     tests/random_graphs.t build/release/tectum --virtual 10000 --real 500
. "$(dirname "$0")/opening.sh"
[ $# -eq 0 ] || shift
python3 tests/random_graphs.py "$T" "$@"
