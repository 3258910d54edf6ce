#!/bin/sh
# control.t - a running robot is told: policies loaded on trial, fallback, dumps, hostile bytes.
# usage: tests/control.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
robot=
trap '[ -z "$robot" ] || kill "$robot" 2>/dev/null; rm -rf "$W"' EXIT
I=$PWD/tests/golden/demo/episodes/inputs.safetensors
S=$W/robot
# says NAME STATUS TEXT ARGS...: the exit status of `tectum policy`, and a part of what it prints.
says() {
    name=$1 status=$2 text=$3
    shift 3
    timeout 60 "$T" policy "$@" >"$W/out" 2>&1 </dev/null
    got=$?
    case $(cat "$W/out") in *"$text"*) [ $got = "$status" ]; ok $? "$name" ;; *) ok 1 "$name" ;; esac
}
tell() { says "$@" --control "$S"; }
until_file() { for _ in $(seq 100); do "$@" && return 0; sleep 0.1; done; return 1; }
frames() { wc -l <"$W/frames"; }
# goes_on: frames run while this is asked.
goes_on() { before=$(frames); until_file more; }
more() { [ "$(frames)" -gt "$((before + 3))" ]; }
# start ARGS...: frames of one observation, over and over.
start() {
    "$T" run pipelines/demo_metaworld.lua --threads 1 --format json --frames 1000000 \
        --input "observation/image=@$I#button.image[0]" --input "observation/state=@$I#button.state[0]" \
        --input "observation/wrist_image=@$I#button.wrist_image[0]" --input "prompt=press the button" \
        --set guard.hard_us=200000 "$@" >"$W/frames" 2>"$W/err" &
    robot=$!
    until_file [ -s "$W/frames" ]
}
stop() { kill "$robot"; wait "$robot" 2>/dev/null; robot=; }

policy() { # policy NAME VERSION BODY: a policy file
    printf 'return policy { name = "%s", api = 1, version = %s, plan = function(S, F, D)\n%s\nend }\n' \
        "$1" "$2" "$3" >"$W/$1.lua"
}
policy wrong 2 'if F.index % 3 == 0 then error("a bug") end'
policy late 3 'if F.index > 1000000 then S.x = 1 end'
policy buggy 4 'return F.reqs'
echo 'return policy { name = "x", api = 1, plan = nosuch }' >"$W/broken.lua"

start --control "$S"
ok $? "a robot runs"
[ "$(stat -c %a "$S")" = 600 ]; ok $? "its socket is its user's alone"
tell "the status" 0 "'oxygen' decides; policy 'oxygen' version 1" status
tell "a change of k is adopted" 0 "policy 'oxygen' version 1: adopted" load oxygen --param k=2 --wait
grep -q '100 of 100 frames, [0-9]* decided otherwise' "$W/out"; ok $? "its trial is told"
tell "with its parameter" 0 "k = 2" status
tell "a parameter is set" 0 "next frame on: set" set k=3
goes_on; tell "and seen" 0 "k = 3" status
tell "... which status tells" 0 "set 'oxygen' version 1: k = 3, was 2" status
grep -q "frame [0-9]*: policy 'oxygen' is set by order: k = 3, was 2" "$W/err"; ok $? "and standard error"
tell "a value out of range" 2 "k" set k=99
tell "an unknown parameter" 2 "kk" set kk=1
tell "a policy that fails on trial" 1 "policy 'wrong' version 2: rejected" load "$W/wrong.lua" --wait
grep -q "a bug" "$W/out"; ok $? "its message is told"
goes_on; ok $? "the robot's frames go on"
! grep -q '"policy": "wrong"' "$W/frames"; ok $? "none was planned by it"
tell "a file that is wrong" 3 "unknown name 'nosuch'" load "$W/broken.lua" --wait
tell "a file that is not there" 3 "No such file" load "$W/none.lua"
tell "another policy" 0 "adopted" load "$W/late.lua" --wait --format json
goes_on; tail -n 1 "$W/frames" | grep -q '"policy": *"late"'; ok $? "frames name it"
tell "a rollback" 0 "next frame on: rollback" rollback
goes_on; tail -n 1 "$W/frames" | grep -q '"policy": *"oxygen"'; ok $? "the one before is back"
tell "the fallback" 0 "next frame on" fallback
goes_on; tell "decides" 0 "'default' decides; policy 'oxygen' version 1, stood down" status
tail -n 1 "$W/frames" | grep -q '"policy": *"default"'; ok $? "and frames name it"
tell "reinstate" 0 "next frame on" reinstate
goes_on; tell "the policy decides" 0 "'oxygen' decides" status
kill -USR2 "$robot"; goes_on
tell "SIGUSR2 is a call for the fallback" 0 "'default' decides" status
tell "reinstate after it" 0 "next frame on" reinstate
goes_on; (cd "$W" && case $T in /*) ;; *) T=$OLDPWD/$T ;; esac && "$T" policy dump --control robot -o d.jsonl >out 2>&1)
[ "$(wc -l <"$W/d.jsonl")" = 65 ] && head -n 1 "$W/d.jsonl" | grep -q '"policy":"oxygen"'
ok $? "a dump: a head and 64 frames"
tell "nothing to drop" 2 "no policy on trial" drop
says "a load without a robot" 3 "is a robot running" load oxygen --control "$W/nobody"
says "no socket" 2 "needs --control" fallback
tell "an argument too many" 2 "takes no argument" fallback now
says "a second robot at the same socket" 2 "nothing" nothing
"$T" run pipelines/demo_metaworld.lua --control "$S" --input prompt=x >"$W/out" 2>&1
[ $? = 2 ] && grep -q 'a running process listens there' "$W/out"; ok $? "a socket in use is refused"
"$T" run pipelines/demo_metaworld.lua --control "$W/late.lua" --input prompt=x >"$W/out" 2>&1
[ $? = 2 ] && grep -q 'no socket' "$W/out" && [ -s "$W/late.lua" ]; ok $? "a file is not replaced"

if command -v python3 >/dev/null 2>&1; then
    python3 - "$S" >"$W/out" 2>&1 <<'PYTHON'
import json, os, random, socket, sys, time
def open_():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.settimeout(20)
    return s
def line(s):
    got = b""
    while not got.endswith(b"\n"):
        part = s.recv(65536)
        if not part:
            return None if not got else got
        got += part
    return json.loads(got)
def ask(data):
    s = open_()
    s.sendall(data)
    return line(s)
for bad in (b"\n", b"{}\n", b"[]\n", b"nul\0l\n", b"\xff\xfe\n", b'{"cmd":5}\n', b'{"cmd":"status","x":1}\n',
            b'{"cmd":"status","cmd":"status"}\n', b'{"cmd":"load"}\n', b'{"cmd":"load","policy":"a\\u0000b"}\n',
            b'{"cmd":"load","policy":"oxygen","params":[1]}\n', b'{"cmd":"load","policy":"oxygen","params":{"k":"x"}}\n',
            b'{"cmd":"set","param":"k","value":1e999}\n', b'{"cmd":"dump","path":"/nowhere/x"}\n', b"[" * 60000 + b"\n"):
    r = ask(bad)
    assert r["ok"] is False and r["error"] and r["status"], (bad[:40], r)
os.mkfifo(sys.argv[1] + ".fifo")                # dumps: neither the socket itself nor what may stall the robot
for path, why in ((sys.argv[1], "is a socket"), (sys.argv[1] + ".fifo", "is a FIFO")):
    r = ask(b'{"cmd":"dump","path":"%s"}\n' % path.encode())
    assert r["ok"] is False and why in r["error"], r
assert ask(b'{"cmd":"status"}\n')["ok"]
assert "at most 65536 bytes" in ask(b"x" * 65536)["error"]
s = open_()                                     # half lines, then two at once
for byte in b'{"cmd":"status"}':
    s.sendall(bytes([byte]))
s.sendall(b'\n{"cmd":"status"}\n{"cmd":"nosuch"}\n')
rest = b""
while rest.count(b"\n") < 3:
    rest += s.recv(65536)
answers = [json.loads(x) for x in rest.splitlines()]
assert answers[0]["ok"] and answers[1]["ok"] and "unknown cmd" in answers[2]["error"]
s.shutdown(socket.SHUT_WR)                      # a half line that never ends
random.seed(1)
for i in range(100):
    s = open_()
    try:
        s.sendall(bytes(random.randrange(256) for _ in range(random.randrange(2000))))
    except OSError:
        pass
    s.close()
time.sleep(1)                                   # those before are gone
held = [open_() for _ in range(4)]              # all places taken: the fifth is told so
for h in held:
    h.sendall(b'{"cmd":"status"}\n')
    assert line(h)["ok"]
assert "come again later" in (line(open_()) or {}).get("error", "")
for h in held:
    h.close()
time.sleep(0.3)
s = open_()                                     # leaves before its answer, orders count all the same
s.sendall(b'{"cmd":"fallback"}\n')
s.close()
time.sleep(0.5)
r = ask(b'{"cmd":"status"}\n')
assert r["decides"] == "default" and r["standby"], r
assert ask(b'{"cmd":"reinstate"}\n')["ok"]
slow = open_()                                  # asks and never reads
try:
    slow.settimeout(1)
    for i in range(20000):
        slow.sendall(b'{"cmd":"status"}\n')
except OSError:
    pass
assert ask(b'{"cmd":"status"}\n')["ok"]
PYTHON
    ok $? "hostile bytes, half lines, too many connections"
    goes_on; ok $? "frames go on beside them"
fi

tell "a policy that fails in force" 1 "rejected" load "$W/buggy.lua" --wait
ls "$W" | grep -q '^robot.buggy-frame[0-9]*.jsonl$'; ok $? "its record lies beside the socket"
stop
[ -S "$S" ]; ok $? "a robot that was killed leaves its socket"

# Quarantine: fallback, one line, a dump.
mkdir "$W/dumps"
start --control "$S" --dump-dir "$W/dumps" --policy "$W/buggy.lua" --set guard.fallback=shared_kv
ok $? "a stale socket is replaced"
goes_on; tell "the guard's fallback decides" 0 "'shared_kv' decides; policy 'buggy' version 4, quarantined" status
grep -q "policy 'buggy' failed: .*quarantined; 'shared_kv' decides; its last frames are in $W/dumps/buggy-frame" "$W/err"
ok $? "one line says what happened"
ls "$W/dumps" | grep -q '^buggy-frame2.jsonl$'; ok $? "a dump lies in its folder"
head -n 1 "$W"/dumps/buggy-frame2.jsonl | grep -q '"quarantined":true.*no field .reqs'; ok $? "with the reason"
stop
rm -f "$W"/dumps/*
"$T" run pipelines/demo_metaworld.lua --threads 1 --frames 4 --policy "$W/buggy.lua" --dump-dir "$W/dumps" --input prompt=x \
    --input "observation/image=@$I#button.image[0]" --input "observation/state=@$I#button.state[0]" \
    --input "observation/wrist_image=@$I#button.wrist_image[0]" --control "$S" >"$W/out" 2>"$W/err"
[ $? = 0 ] && [ ! -e "$S" ]; ok $? "a robot that ends removes its socket"
ls "$W/dumps" | grep -q buggy; ok $? "a short run is told, too"

# serve: the same thread beside the server.
"$T" serve pipelines/demo_metaworld.lua --threads 1 --port 0 --late-ok --control "$S" >"$W/out" 2>"$W/err" &
robot=$!
until_file grep -q serving "$W/out"
tell "a server without clients" 0 "policy 'oxygen' version 1" status
tell "waits for frames" 3 "still on trial after 4 s" load oxygen --wait --timeout-s 4
grep -q "waiting for the trial, at most 4 s: no frame in 2 s" "$W/out"; ok $? "and says so meanwhile"
tell "one at a time" 2 "policy 'edf' cannot be loaded: 'oxygen' is on trial; wait until that is over (policy status), or give it up (policy drop)" load edf
tell "what is on trial is given up" 0 "" drop
kill -TERM $robot; wait $robot; [ $? = 0 ] && [ ! -e "$S" ]; ok $? "it ends, and its socket is gone"
robot=

# Misses because of the plan are strikes, those of the device are not.
P=tests/golden/schedules/paced_edf
policy greedy 1 'for i = 1, F.nreq do D:decode(i, 64) D:batch(i, i) end'
sim() { # sim POLICY ARGS...
    sim_policy=$1
    shift
    "$T" simulate $P/pipeline.lua --costs $P/costs.json --frames 80 --clock paced --policy "$sim_policy" --format json \
        --set guard.window_frames=16 --set guard.hard_us=200000 "$@" >"$W/out" 2>"$W/err"
}
sim "$W/greedy.lua" --trace "$W/trace" --dump "$W/greedy.jsonl"
grep -q '"quarantined": true' "$W/out"; ok $? "a policy whose plans miss deadlines is quarantined"
grep -q "policy 'greedy' missed the deadline in [0-9]* of 16 frames, by plan or policy (strike 3/3), quarantined" "$W/err"
ok $? "the share is told"
head -n 1 "$W/greedy.jsonl" | grep -q '"quarantined":true.*missed the deadline'; ok $? "simulate --dump has the reason"
grep -q '"policy": *"greedy"' "$W/trace" && tail -n 100 "$W/trace" | grep -q '"policy": *"default"'
ok $? "its fallback is named in the trace"
sim "$W/greedy.lua" --set guard.fallback=edf --trace "$W/trace"
tail -n 100 "$W/trace" | grep -q '"policy": *"edf"'; ok $? "another fallback, too"
faults() { # faults NAME ENTRY: in every frame
    printf '{"schema": 1, "clock": "paced", "frames": 80, "%s": [' "$1"
    for i in $(seq 0 79); do [ "$i" = 0 ] || printf ', '; printf '{"frame": %d, %s}' "$i" "$2"; done
    echo ']}'
}
faults spikes '"node": "act", "add_us": 100000' >"$W/gpu.json"
faults late '"us": 90000' >"$W/input.json"
for cause in gpu input; do
    rm -f "$W/edf.jsonl"
    sim edf --scenario "$W/$cause.json" --dump "$W/edf.jsonl"
    grep -q '"quarantined": false' "$W/out" && grep -q "\"$cause\": *[1-9]" "$W/out" && [ ! -e "$W/edf.jsonl" ]
    ok $? "what $cause causes is no strike"
done
echo "1..$n"
exit $failed
