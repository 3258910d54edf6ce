# python_package.sh - the Python package of what the program's build has compiled.  . "$root/tests/python_package.sh", behind opening.sh
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
