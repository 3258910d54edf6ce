#!/bin/sh
# openpi_jax.t - tools/convert/openpi.py: parameters of openpi's JAX models become the tensors of its PyTorch files,
# and folders that orbax wrote are read where tensorstore is installed. usage: tests/openpi_jax.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
for python in "${TECTUM_PYTHON:-}" /usr/bin/python3 python3; do
    [ -n "$python" ] && "$python" -c "import numpy" 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with numpy"; exit 0; }
for case in pi0_tiny pi0_odd pi05_tiny pi05_odd; do
    "$python" tests/openpi_jax.py golden tests/golden/pi/$case/checkpoint >"$W/out" 2>"$W/err"
    ok $? "$case: parameters become the golden tensors, bit for bit"
done
"$python" tests/openpi_jax.py refused >"$W/out" 2>"$W/err"
ok $? "what is no checkpoint of pi0 or pi0.5 is refused by name"
if "$python" -c "import tensorstore" 2>/dev/null; then
    "$python" tests/openpi_jax.py orbax tests/fixtures/openpi "$W/made" >"$W/out" 2>"$W/err"
    ok $? "folders of orbax are converted, low-rank factors merged"
    "$T" inspect "$W/made/pi05" --format json >"$W/out" 2>"$W/err" &&
        grep -q '"missing":\[\],"unexpected":\[\],"mismatched":\[\]' "$W/out" && grep -q '"model":"pi05"' "$W/out"
    ok $? "the program reads the result"
else
    n=$((n + 1))
    echo "ok $n - folders of orbax are converted # SKIP no tensorstore in $python"
fi
echo "1..$n"
exit $failed
