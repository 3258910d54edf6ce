#!/bin/sh
# async_client.t - a robot's asynchronous client against `tectum serve`: tectum.AsyncClient over libtectum_client.so,
# see async_client.py. usage: tests/async_client.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
PYTHONPATH=$root/build/python-packages${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
for python in "${TECTUM_PYTHON:-}" /usr/bin/python3 python3; do
    [ -n "$python" ] && "$python" -c "import cffi, numpy" 2>/dev/null && break
    python=
done
library=$(dirname "$T")/libtectum_client.so
[ -n "$python" ] && [ -f "$library" ] || { echo "1..0 # SKIP no python3 with numpy and cffi, or no libtectum_client.so beside the program"; exit 0; }
if nm -D "$library" | grep -q '__asan_\|__tsan_'; then
    echo "1..0 # SKIP a library with a sanitizer does not go into Python; tests/client_link.c does its part"
    exit 0
fi
# The package without the engine: the client's library in the place of the whole one, which has the same functions.
mkdir -p "$W/package/tectum"
cp python/tectum/*.py "$W/package/tectum/" && cp "$library" "$W/package/tectum/libtectum.so" &&
    "$python" python/binding.py 0 "$W/package/tectum/_binding.py" tectum.h tectum_client.h || exit 1
PYTHONPATH=$W/package:$PYTHONPATH "$python" tests/async_client.py "$T"
