#!/bin/sh
# graph_page.t - the page of `graph -T html`: no link crosses a box, no text leaves its box, nothing
# comes from elsewhere, hostile names are text; see graph_page.py.
. "$(dirname "$0")/opening.sh"
PYTHONDONTWRITEBYTECODE=1 python3 tests/graph_page.py "$T" "$W"
