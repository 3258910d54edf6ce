#!/bin/sh
# setup.sh - make the Python environment of the demo in build/demo/venv.  tools/demo/setup.sh [--train]
#   --train  also PyTorch, for training and for `rollout --checkpoint`
# Does nothing, and needs no network and no rights, when everything is there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/build/demo/venv log=$root/build/demo/setup.log
torch_index=https://download.pytorch.org/whl/cpu

train=
for option in "$@"; do
    case $option in
    --train) train=1 ;;
    *) echo "usage: tools/demo/setup.sh [--train]" >&2; exit 2 ;;
    esac
done

say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }

# installed FILE: the environment works and has what FILE names.
installed() {
    cmp -s "$here/$1" "$venv/$1" && "$venv/bin/python" -c '' 2>/dev/null
}

# pip ARGUMENT...: quiet; what it says is in the log.
pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check install -q "$@" >>"$log" 2>&1
}
# pip_failed: the last errors of the log, and what to do.
pip_failed() {
    grep '^ERROR' "$log" | tail -n 3 | sed 's/^/    /' >&2
    fail "pip could not install the packages (is the network there?); all it said is in $log"
}

system() {
    sh "$root/tools/setup.sh" --demo >&2 ||
        python3 -c 'import ctypes, ensurepip; ctypes.CDLL("libEGL.so.1")' 2>/dev/null ||
        fail "python3 with venv and EGL are needed"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "Python 3.11 or newer is needed; this is $(python3 --version)"
}

# A half-made environment is made anew: a MuJoCo that came first would stay.
plain() {
    say "installing the simulator into build/demo/venv (about 400 MB, a minute or two)"
    rm -rf "$venv"
    mkdir -p "$root/build/demo"
    : >"$log"
    python3 -m venv "$venv" >>"$log" 2>&1 || fail "python3 -m venv failed; see $log"
    pip -r "$here/requirements.txt" || pip_failed
    "$venv/bin/python" -m pip check >>"$log" 2>&1 || fail "packages contradict each other; see $log"
    cp "$here/requirements.txt" "$venv/"
}

# The build of PyTorch for the CPU where that index can be reached, else the large one.
with_torch() {
    say "installing PyTorch into build/demo/venv"
    pip --retries 0 --timeout 15 --no-deps --index-url "$torch_index" \
        "$(grep '^torch==' "$here/requirements-train.txt")" ||
        say "no PyTorch from $torch_index; taking the package index's (about 5 GB)"
    pip -r "$here/requirements.txt" -r "$here/requirements-train.txt" || pip_failed
    cp "$here/requirements-train.txt" "$venv/"
}

todo=
installed requirements.txt || todo=plain
[ -z "$train" ] || { [ -z "$todo" ] && installed requirements-train.txt; } || todo="$todo with_torch"
[ -n "$todo" ] || { echo "setup: the demo's environment is in build/demo/venv"; exit 0; }
system
for part in $todo; do $part; done
echo "setup: the demo's environment is in build/demo/venv"
