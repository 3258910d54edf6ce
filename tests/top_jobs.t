#!/bin/sh
# top_jobs.t - `tectum top` as a job of a shell: stopped, in the background, in the foreground again:
# see top_jobs.py.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/top_jobs.py "$T"
