#!/bin/sh
# python_aarch64.t - the wheel for 64-bit ARM (tools/wheel.sh --aarch64): what is in it, and used under qemu, see python_aarch64.py.
# usage: tests/python_aarch64.t [PROGRAM], of a build of the preset aarch64
set -- "${1:-build/aarch64/tectum}"
. "$(dirname "$0")/opening.sh"
arm=$root/build/aarch64-root python=$root/build/aarch64-root/usr/bin/python3.11 packages=$root/build/aarch64-python
for needed in "$arm/usr/include" "$python" "$packages" build/wheel-venv/bin/auditwheel; do
    [ -e "$needed" ] || { echo "1..0 # SKIP no $needed: tools/setup.sh --aarch64, or for the last tools/wheel.sh --aarch64, brings it"; exit 0; }
done
command -v qemu-aarch64-static >/dev/null || { echo "1..0 # SKIP no qemu-aarch64-static: tools/setup.sh --aarch64"; exit 0; }
on_aarch64() { qemu-aarch64-static -L "$arm" "$@"; }

sh tools/wheel.sh --aarch64 >"$W/wheel" 2>"$W/err" && wheel=$(cat "$W/wheel") && [ -f "$wheel" ]
ok $? "the wheel is made by one command"
[ $failed -eq 0 ] || { echo "1..$n"; exit 1; }
# The newest C library that anything in it asks for is what its tag says, and not newer than a Jetson's (Ubuntu 22.04).
python3 -m zipfile -e "$wheel" "$W/files"
for file in "$W"/files/tectum/libtectum.so "$W"/files/tectum.libs/*; do
    aarch64-linux-gnu-readelf -h "$file" | grep -q 'Machine: *AArch64' || echo "$file" >>"$W/foreign"
    aarch64-linux-gnu-readelf -V "$file"
done | grep -o 'GLIBC_2\.[0-9]*' | sort -t. -k2n -u >"$W/out"
newest=$(tail -n 1 "$W/out" | cut -d. -f2)
[ ! -e "$W/foreign" ] && case $wheel in *-manylinux_2_"$newest"_aarch64.whl) [ "$newest" -le 35 ] ;; *) false ;; esac
ok $? "its libraries are for that machine, and ask for the C library of its tag"
/usr/bin/python3 -m pip --disable-pip-version-check install -q --root-user-action=ignore --no-index --no-deps --no-compile \
    --only-binary :all: --platform "manylinux_2_${newest}_aarch64" --python-version 3.10 --target "$W/installed" "$wheel" >"$W/out" 2>"$W/err"
ok $? "pip takes it for Python 3.10 of Ubuntu 22.04 on such a machine"
[ $failed -eq 0 ] || { echo "1..$n"; exit 1; }

cat >"$W/tectum" <<END
#!/bin/sh
exec qemu-aarch64-static -L $arm $T "\$@"
END
chmod +x "$W/tectum"
PYTHONPATH=$W/installed:$packages PYTHONDONTWRITEBYTECODE=1 on_aarch64 "$python" tests/python_aarch64.py "$W/tectum" "$n"
status=$?
[ $failed -eq 0 ] || status=1
exit $status
