#!/bin/sh
# python.t - the Python package: built, installed into a folder, and used from elsewhere, see python_page.py and python.py.
# usage: tests/python.t [PROGRAM] [--wheel]; without --wheel it is made of what PROGRAM's build has compiled.
. "$(dirname "$0")/opening.sh"
. "$root/tests/python_package.sh"
for python in "${TECTUM_PYTHON:-}" /usr/bin/python3 python3; do
    [ -n "$python" ] && "$python" -c "import cffi, scikit_build_core, numpy, pip" 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with pip, numpy, cffi and scikit-build-core: tools/setup.sh --test brings them"; exit 0; }

# from_wheel: as pip does it, which compiles everything anew in build/python.
from_wheel() {
    "$python" -m pip --disable-pip-version-check wheel -q --no-index --no-deps --no-build-isolation \
        --config-settings build-dir="$root/build/python" -w "$W/wheel" "$root/python" &&
        "$python" -m pip --disable-pip-version-check install -q --no-index --no-deps --no-compile \
            --target "$W/installed" "$W"/wheel/*.whl
}
if [ "${2:-}" != --wheel ] && makes_python_package; then
    python_package "$W/installed" >"$W/out" 2>"$W/err"; ok $? "the package is made of the build"
else
    from_wheel >"$W/out" 2>"$W/err"; ok $? "the wheel is built and installed"
fi
[ $failed -eq 0 ] || { echo "1..$n"; exit 1; }
"$python" -m compileall -q -f "$W/installed/tectum" >"$W/out" 2>&1
ok $? "every file compiles"
[ -f "$W/installed/tectum/py.typed" ]
ok $? "the package says that it is typed"
nm -D --defined-only "$W/installed/tectum/libtectum.so" | awk '{ print $3 }' | grep -v '^tectum_' >"$W/out"
[ ! -s "$W/out" ] && nm -D --defined-only "$W/installed/tectum/libtectum.so" | grep -q ' tectum_open$'
ok $? "the library exports what tectum.h declares, and nothing else"
# Its source: all that is read to build it is there, with the version and the models. `pip install build/sdist/*.tar.gz` is
# the whole of it, and compiles everything anew.
if git rev-parse HEAD >/dev/null 2>&1; then
    sh tools/sdist.sh >"$W/sdist" 2>"$W/err" && mkdir "$W/source" && tar -xzf "$(cat "$W/sdist")" -C "$W/source" &&
        cmake -S "$W"/source/tectum-* -B "$W/made" -DTECTUM_PYTHON=ON -DTECTUM_CUDA=off >"$W/out" 2>"$W/err" &&
        cmake --build "$W/made" --target tectum_python_binding >"$W/out" 2>"$W/err"
    ok $? "the package is made as source, and configured from it alone"
    (cd "$W"/source/tectum-* && [ -f PKG-INFO ] && grep -q '^cmake.source-dir = "."' pyproject.toml && [ -f python/tectum/client.py ] &&
        [ -n "$(find pipelines/checkpoints -name '*.safetensors')" ] && [ -z "$(find . -name golden -o -name episodes)" ])
    ok $? "with what the package brings, and nothing of the tests' data"
else
    n=$((n + 1)); echo "ok $n - the package as source # SKIP this is no git repository"
fi
cd "$W" || exit 1
PYTHONPATH=$W/installed:$PYTHONPATH
timeout 120 "$python" "$root/tests/python_page.py" "$root" "$n" >"$W/page" || failed=1
cat "$W/page"
n=$((n + $(grep -c '^\(not \)\{0,1\}ok ' "$W/page")))
timeout 120 "$python" "$root/tests/python.py" "$T" "$root" "$n"
status=$?
[ $failed -eq 0 ] || status=1
exit $status
