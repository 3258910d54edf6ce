#!/bin/sh
# policies.t - the verb policy: unit tests of the bundled policies, and that wrong ones are seen.
cd "$(dirname "$0")/.." || exit 1
tectum=
for preset in release dev clang asan; do
    [ -n "$tectum" ] || [ ! -x "build/$preset/tectum" ] || tectum=$PWD/build/$preset/tectum
done
if [ -z "$tectum" ]; then
    echo "1..0 # SKIP tectum is not built"
    exit 0
fi
n=0 bad=0
check() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"
    else bad=1; echo "not ok $n - $2"; fi
}
# says NAME STATUS TEXT ARGS...: the exit status, and a part of what is printed.
says() {
    name=$1 status=$2 text=$3
    shift 3
    out=$("$tectum" policy "$@" 2>&1)
    got=$?
    case $out in *"$text"*) [ $got = "$status" ]; check $? "$name" ;;
    *) check 1 "$name"; echo "# $out" | head -n 5 >&2 ;; esac
}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

for file in tests/policies/*.lua; do
    grep -q 'tectum.test' "$file" || continue
    says "$(basename "$file" .lua)" 0 ", 0 not ok" test "$file"
done
for policy in policies/*.lua; do
    name=$(basename "$policy" .lua)
    grep -qE "policy = \"$name\"|of[ (]\"$name\"" tests/policies/*.lua
    check $? "$name has a unit test"
done

# A wrong expectation is seen, with its place and both sides; every one of them.
wrong=tests/policies/wrong/expects.lua
says "a wrong expectation" 1 "$wrong:4: decode: expected { 5, 4 }, decided { 5, 5 }" test $wrong
expected=$(grep -c 't:expect' $wrong)
[ "$("$tectum" policy test $wrong | grep -c '^FAIL')" = "$expected" ]; check $? "all $expected are seen"
"$tectum" policy test $wrong --format json | grep -q '^{"ok": false, "checks": \[{"name": "tests/policies/wrong/expects.lua:4: decode", "ok": false, "detail": "expected'
check $? "json has ok and checks of name, ok and detail"
"$tectum" policy test tests/policies/edf.lua tests/policies/oxygen.lua --format json | grep -c . | grep -q '^1$'
check $? "json is one object for all files"

# try NAME STATUS TEXT SCRIPT: a test file with this text after the usual first line.
try() {
    { echo 'local t = tectum.test { pipeline = "pi05_aloha.lua", policy = "oxygen" }'; echo "$4"; } >"$dir/t.lua"
    says "$1" "$2" "$3" test "$dir/t.lua"
}
try "a test that expects nothing" 1 "nothing is expected" 't:frame { nreq = 1 }'
try "an unknown field" 1 "t.lua:2: unknown field 'slak_us' in a frame, did you mean 'slack_us'?" 't:frame { slak_us = 1 }'
try "an unknown expectation" 1 "did you mean 'decode'?" 't:frame {} t:expect { decod = {} }'
try "an unknown method" 1 "no method 'fame'" 't:fame {}'
try "nothing asked yet" 1 "expect comes after" 't:expect { decode = {} }'
try "an expectation of another call" 1 "'victim' comes after t:evict" 't:frame {} t:expect { victim = 1 }'
try "an error nobody expects" 1 "t.lua:2: the policy failed" 't:frame { nreq = 1, params = { k = 3 } } t:observe { tokens = 1 } t:frame { nreq = 1, cost = { decode = 0/0 } } t:expect { decode = { 1 } } error "the policy failed"'
try "an unknown node" 1 "no node 'tlak'" 't:frame { requests = { { node = "tlak" } } }'
try "an unknown parameter" 1 "did you mean 'k'?" 't:frame { params = { kk = 3 } }'
try "a value out of range" 1 "must be a whole number from 0 to 64" 't:frame { nreq = 65 }'
try "rows out of order" 1 "order of id" 't:frame { requests = { { id = 2 }, { id = 2 } } }'
try "an endless loop" 1 "instruction budget used up" 'while true do end'
try "too much memory" 1 "more memory than allowed" 'local x = {} for i = 1, 1e9 do x[i] = {} end'
try "no policy of that name" 1 "did you mean 'oxygen'?" 'tectum.test { pipeline = "pi05_aloha.lua", policy = "oxigen" }'
try "no pipeline of that name" 1 "No such file" 'tectum.test { pipeline = "nowhere.lua", policy = "oxygen" }'
try "a wrong field of the pipeline" 1 "frame period" 'tectum.test { pipeline = "pi05_aloha.lua", policy = "oxygen", set = { "nodes.act.deadline.ms=120" } }'
echo 'local t = tectum.test {' >"$dir/t.lua"
says "a file that is no Lua" 3 "t.lua:2:" test "$dir/t.lua"
says "a file that is not there" 3 "No such file" test "$dir/none.lua"
says "no file" 2 "a test file is missing" test
says "an unknown action" 2 "did you mean 'test'?" tets
says "no action" 2 "what to do"

# A policy that hangs is ended, and said so.
printf 'return policy { name = "hang", api = 1, plan = function() while true do end end }' >"$dir/hang.lua"
printf 'local t = tectum.test { pipeline = "pi05_aloha.lua", policy = "hang.lua" }\nt:frame {}\nt:expect { decode = {} }' >"$dir/t.lua"
says "a policy that hangs" 1 "the policy failed: policy 'hang': " test "$dir/t.lua"
cd / && says "from another folder" 0 ", 0 not ok" test "$OLDPWD/tests/policies/tool.lua"
echo "1..$n"
exit $bad
