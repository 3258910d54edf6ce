#!/bin/sh
# network.t - tools/measure/network.py: a delay is seen in the age of actions, and not by the server.
# usage: tests/network.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
PATH=$PATH:/usr/sbin

# column NAME N: of a network's line, the number in a column.
column() { awk -F'|' -v name=" $1 " -v n="$2" '$2 == name { print $n + 0 }' "$W/out"; }
# slower A B MS: the median of B is at least MS above that of A.
slower() { awk -v a="$(column "$1" 3)" -v b="$(column "$2" 3)" -v ms="$3" 'BEGIN { exit !(a > 0 && b >= a + ms) }'; }

python3 tools/measure/network.py "$T" --relay --rounds 1 --requests 9 >"$W/out" 2>"$W/err" && [ "$(grep -c ' ms | [0-9]* | [0-9]' "$W/out")" -eq 6 ]
ok $? "six networks are measured without rights"
[ "$(column "60 ms each way" 6)" -eq 9 ] && awk -v p50="$(column "60 ms each way" 3)" 'BEGIN { exit !(p50 >= 120) }'
ok $? "over one with 60 ms each way every action is older than 120 ms"
slower "a cable" "60 ms each way" 60
ok $? "which is the network's doing"
# A machine that is slow by itself misses over a cable as well.
[ "$(column "60 ms each way" 7)" -lt 9 ] || [ "$(column "a cable" 7)" -gt 0 ]
ok $? "and the server knows nothing of it"
python3 tools/measure/network.py "$T" --rounds 1 --requests 2 >"$W/out" 2>"$W/err"
status=$?
if grep -q '^SKIP: ' "$W/out"; then
    [ "$status" -eq 0 ]
    ok $? "netem # SKIP $(sed -n 's/^SKIP: //p' "$W/out")"
else
    [ "$status" -eq 0 ] && [ "$(grep -c ' ms | [0-9]* | [0-9]' "$W/out")" -eq 8 ]
    ok $? "eight networks of netem are measured in a namespace"
fi
echo "1..$n"
exit $failed
