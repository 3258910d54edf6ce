#!/bin/sh
# network.t - tools/measure/network.py: what a network does is seen in the age of actions, and not by the server; a queue covers it.
# usage: tests/network.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
. "$root/tests/python_package.sh"
PATH=$PATH:/usr/sbin

# column NAME N: of a network's line, the number in a column.
column() { awk -F'|' -v name=" $1 " -v n="$2" '$2 == name { print $n + 0 }' "$W/out"; }
# slower A B MS: the median of B is at least MS above that of A.
slower() { awk -v a="$(column "$1" 3)" -v b="$(column "$2" 3)" -v ms="$3" 'BEGIN { exit !(a > 0 && b >= a + ms) }'; }
# measures LINES OPTION...: a network a line; where that is not permitted here the check is skipped, with status 2.
measures() {
    lines=$1 what=$2
    shift 2
    "$python" tools/measure/network.py "$T" --rounds 1 "$@" >"$W/out" 2>"$W/err"
    status=$?
    if [ "$status" -eq 0 ] && grep -q '^SKIP: ' "$W/out"; then
        n=$((n + 1))
        echo "ok $n - $what # SKIP $(sed -n 's/^SKIP: //p' "$W/out")"
        return 2
    fi
    [ "$status" -eq 0 ] && [ "$(grep -c ' ms | .* ms | [0-9]' "$W/out")" -eq "$lines" ]
    ok $? "$what"
}

python=python3
if measures 8 "eight networks are measured by a robot that waits for replies" --requests 20; then
    [ "$(column "60 ms each way" 6)" -eq 20 ] && awk -v p50="$(column "60 ms each way" 3)" 'BEGIN { exit !(p50 >= 120) }'
    ok $? "over one with 60 ms each way every action is older than 120 ms"
    slower "a cable" "60 ms each way" 60
    ok $? "which is the network's doing"
    # A machine that is slow by itself misses over a cable as well.
    [ "$(column "60 ms each way" 7)" -lt 20 ] || [ "$(column "a cable" 7)" -gt 0 ]
    ok $? "and the server knows nothing of it"
    # A packet that is lost costs another way there and back at least.
    [ "$(column "20 ms, 3 % lost" 8)" -gt 0 ] && awk -v max="$(column "20 ms, 3 % lost" 5)" 'BEGIN { exit !(max >= 80) }'
    ok $? "packets that are lost are sent again, and waited for"
fi
measures 8 "eight networks of netem are measured" --netem --requests 2

python=$(client_python)
if makes_client_package; then
    client_package "$W/package" || exit 1
    export PYTHONPATH="$W/package:$PYTHONPATH"
    if measures 9 "nine networks are measured by a robot that has a queue, also one that is gone for a while" --queue --seconds 3; then
        awk -v p99="$(column "60 ms each way" 3)" 'BEGIN { exit !(p99 >= 120) }'
        ok $? "a reply takes as long as its way"
        dry=$(column "5 ms, gone for 3 s" 8)
        [ "$dry" -gt 0 ] && [ "$(column "60 ms each way" 8)" -lt "$dry" ] && [ "$(column "20 ms, 3 % lost" 8)" -lt "$dry" ]
        ok $? "the queue covers delay and loss, and is dry where nothing comes for longer than its rows last"
        awk -v max="$(column "5 ms, gone for 3 s" 6)" 'BEGIN { exit !(max >= 1000 && max < 1700) }'
        ok $? "no action is older than its chunk is long and the way of its reply"
    fi
else
    n=$((n + 1))
    echo "ok $n - a robot that has a queue # SKIP no python3 with numpy and cffi, or no libtectum_client.so for it"
fi
echo "1..$n"
exit $failed
