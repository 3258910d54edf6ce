#!/bin/sh
# sdist.sh - the Python package as source: build/sdist/tectum-VERSION.tar.gz, which pip compiles where it is installed.
#
#   sh tools/sdist.sh     needs git and tar; whoever installs it needs tools/setup.sh's packages
#
# It has what CMakeLists.txt reads, python/pyproject.toml at its root, and the models that the package brings.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(tectum VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=tectum-$version place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
models='pipelines/checkpoints/(metaworld|planner)/'
git ls-files -- CMakeLists.txt LICENSE tectum.h tectum_client.h cmake base kernels ops graph policies tools python pipelines tests |
    grep -vE '^tests/(golden|graphs|campaign|fixtures|frozen|fuzz)/|/(episodes|train)/|/questions\.jsonl$' |
    grep -E "^(CMakeLists.txt|LICENSE|tectum.*\.h|cmake/|python/|$models)|\.(c|h|inc|def|cu|cuh|cc|cpp|hpp|lua|css|js|cmake)$|CMakeLists.txt$|^tools/(systemd|[a-z_]*\.sh)" >"$place/list"
mkdir "$place/$name"
tar -cf - -T "$place/list" | tar -xf - -C "$place/$name"
sed -e 's|^readme = .*|readme = "python/README.md"|' -e 's|^cmake.source-dir = .*|cmake.source-dir = "."|' \
    -e 's|^wheel.packages = .*|wheel.packages = ["python/tectum"]|' -e 's|^input = .*|input = "CMakeLists.txt"|' \
    python/pyproject.toml >"$place/$name/pyproject.toml"
rm "$place/$name/python/pyproject.toml"
summary=$(sed -n 's/^description = "\(.*\)"/\1/p' python/pyproject.toml)
python=$(sed -n 's/^requires-python = "\(.*\)"/\1/p' python/pyproject.toml)
printf 'Metadata-Version: 2.1\nName: tectum\nVersion: %s\nSummary: %s\nRequires-Python: %s\n' \
    "$version" "$summary" "$python" >"$place/$name/PKG-INFO"
mkdir -p build/sdist
tar -czf "build/sdist/$name.tar.gz" --owner=0 --group=0 --sort=name -C "$place" "$name"
echo "build/sdist/$name.tar.gz"
