# python_package.sh - the Python package of what the program's build has compiled, whole or of the robot's client alone.
# . "$root/tests/python_package.sh", behind opening.sh
PYTHONPATH=$root/build/python-packages${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-2}
export CMAKE_BUILD_PARALLEL_LEVEL

# makes_python_package: is there a target for it in the program's build?
makes_python_package() { grep -q "^TECTUM_PYTHON:.*=ON" "$(dirname "$T")/CMakeCache.txt" 2>/dev/null; }

# python_package FOLDER: the files of its wheel. Of tests that run side by side one builds at a time.
python_package() {
    makes_python_package &&
        flock "$(dirname "$T")" cmake --build "$(dirname "$T")" --target tectum_python &&
        cmake --install "$(dirname "$T")" --component python --prefix "$1" &&
        cp "$root"/python/tectum/*.py "$root/python/tectum/py.typed" "$1/tectum/"
}

# client_python: a Python that has what the package needs; nothing where there is none.
client_python() {
    for python in "${TECTUM_PYTHON:-}" /usr/bin/python3 python3; do
        [ -z "$python" ] || ! "$python" -c "import cffi, numpy" 2>/dev/null || { echo "$python"; return; }
    done
}

# makes_client_package: is there a library of the client, and $python? One with a sanitizer does not go into Python.
makes_client_package() {
    [ -n "$python" ] && [ -f "$(dirname "$T")/libtectum_client.so" ] &&
        ! nm -D "$(dirname "$T")/libtectum_client.so" | grep -q '__asan_\|__tsan_'
}

# client_package FOLDER: the package without the engine: the client's library in the place of the whole one, which has the
# same functions.
client_package() {
    mkdir -p "$1/tectum" && cp python/tectum/*.py "$1/tectum/" &&
        cp "$(dirname "$T")/libtectum_client.so" "$1/tectum/libtectum.so" &&
        "$python" python/binding.py 0 "$1/tectum/_binding.py" tectum.h tectum_client.h >/dev/null
}
