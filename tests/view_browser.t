#!/bin/sh
# view_browser.t - the page of --view in Chromium: frames, a click, freezing, steps, reading it again, the console, texts at
# three widths; see view_browser.py. usage: tests/view_browser.t [PROGRAM], TECTUM_BROWSER for another browser of that kind
. "$(dirname "$0")/opening.sh"
for browser in "${TECTUM_BROWSER:-}" chromium chromium-browser google-chrome; do
    [ -n "$browser" ] && command -v "$browser" >/dev/null && break
    browser=
done
[ -n "$browser" ] || { echo "1..0 # SKIP no chromium (apt-get install chromium), and TECTUM_BROWSER names none"; exit 0; }
PYTHONDONTWRITEBYTECODE=1 python3 tests/view_browser.py "$T" "$(command -v "$browser")"
