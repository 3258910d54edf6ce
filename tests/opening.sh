# opening.sh - what the tests of the program begin with.  . "$(dirname "$0")/opening.sh"
#
# Goes to the project's folder, skips the test where there is no program or no python3 (with CI set it
# fails there), and sets
#   T       the program, an absolute path: the script's first argument, TECTUM, or what is built
#   root    the project's folder
#   W       a folder for the test's files, removed at its end; programs write $W/out and $W/err
#   n failed  the checks so far, and 1 after one that does not hold
# A script of Python that needs its own library alone runs with `python3 -S`, which starts faster.
cd "$(dirname "$0")/.." || exit 1
root=$PWD
T=${1:-${TECTUM:-}}
[ -n "$T" ] || for T in build/release/tectum build/*/tectum; do # one of another processor does not start
    "$T" --version >/dev/null 2>&1 && break
    T=
done
if [ ! -x "$T" ] || ! command -v python3 >/dev/null 2>&1; then
    [ -z "${CI:-}" ] || { echo "1..1"; echo "not ok 1 - there is a program, and python3"; exit 1; }
    echo "1..0 # SKIP no program or no python3: give the program as an argument"
    exit 0
fi
case $T in /*) ;; *) T=$root/$T ;; esac
W=$(mktemp -d) || exit 1
trap 'rm -rf "$W"' EXIT
n=0 failed=0

# ok STATUS TEXT: a line of TAP; what the program wrote last follows where the check does not hold.
ok() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; return; fi
    failed=1
    echo "not ok $n - $2"
    for file in out err; do
        [ ! -s "$W/$file" ] || tail -n 6 "$W/$file" | cat -v | cut -c 1-300 | sed "s/^/# $file: /" >&2
    done
}

# check TEXT COMMAND...: ok where the command succeeds.
check() {
    text=$1
    shift
    "$@" >/dev/null 2>&1
    ok $? "$text"
}

# actions_of FILE OPTION...: $W/FILE gets the actions of three frames; none at all is a failure.
# Options are to name the CPU; what is compared with another run wants a policy that does not look at
# times, such as isolated.
actions_of() {
    to=$1
    shift
    "$T" run "$@" --random-inputs 4 -n 3 --format json >"$W/out" 2>"$W/err" &&
        python3 -c "import json, sys
actions = [json.loads(line)['actions'] for line in sys.stdin]
for a in actions: print(json.dumps(a))
sys.exit(not any(actions))" <"$W/out" >"$W/$to"
}
