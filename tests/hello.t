#!/bin/sh
# hello.t - the example program of the public interface runs on the demo: actions and a text.
cd "$(dirname "$0")/.." || exit 1
found=
for preset in dev release asan clang; do
    [ -n "$found" ] || [ ! -x "build/$preset/hello" ] || found=build/$preset/hello
done
if [ -z "$found" ]; then
    echo "ok 1 - hello # SKIP not built"
    echo "1..1"
    exit 0
fi
bad=0
check() {
    if [ "$1" = 0 ]; then echo "ok $2"
    else bad=1; echo "not ok $2"; fi
}
out=$("$found" .)
check $? "1 - hello ends well"
case $out in "first action: "*"text: "?*) check 0 "2 - it prints an action and a text" ;;
*) check 1 "2 - it prints an action and a text" ;; esac
[ "$(wc -l <tools/examples/hello.c)" -lt 60 ]
check $? "3 - it has less than 60 lines"
echo "1..3"
exit $bad
