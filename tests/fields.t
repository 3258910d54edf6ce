#!/bin/sh
# fields.t - every field of a pipeline file has a reader: fields.py changes each and looks for a
# difference. usage: tests/fields.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
python3 tests/fields.py "$T"
