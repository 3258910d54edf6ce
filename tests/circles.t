#!/bin/sh
# circles.t - files that call each other in a circle, and folders: no more of them than there were.
# usage: tests/circles.t [PROGRAM] [--update]; from the root.
#
# Who calls whom is read of the objects that the program was linked of: a symbol that one file leaves undefined
# and another one defines. Files that reach each other so are one component; so are folders. Those of more than
# one member are printed. tests/circles.expected has them: one that grows or is new is a failure, and one that
# has become smaller asks for an update of the file, so that what was taken apart stays so.
update=
for word in "$@"; do [ "$word" != --update ] || update=1; done
. "$(dirname "$0")/opening.sh"
objects=$(dirname "$T")/CMakeFiles
if ! command -v nm >/dev/null 2>&1 || [ ! -d "$objects/tectum_graph.dir" ]; then
    [ -z "${CI:-}" ] || { echo "1..1"; echo "not ok 1 - there are nm, and objects beside the program"; exit 1; }
    echo "1..0 # SKIP no nm, or no objects beside the program"
    exit 0
fi
# Objects of files that are gone stay in the folder of a build. The CUDA device has a build of its own, and tiers are of
# one processor.
for floor in base kernels ops graph policies api tools; do
    (cd "$objects/tectum_$floor.dir" && find . -name "*.c.o") | grep -vE "^./kernels/(avx2|avx512|neon)/" | sed 's|^\./||' | while read -r object; do
        [ ! -f "${object%.o}" ] || echo "$objects/tectum_$floor.dir/$object"; done
done >"$W/objects"
xargs -a "$W/objects" nm -A -P | sed "s|^$objects/tectum_[a-z]*\.dir/||" >"$W/symbols"

# circles.py: a line for each component of more than one member, files first.
cat >"$W/circles.py" <<'END'
import os
import sys

sys.setrecursionlimit(10000)
defined, undefined = {}, []
for line in open(sys.argv[1]):
    where, rest = line.split(": ", 1)
    name, kind = rest.split()[:2]
    if kind == "U":
        undefined.append((where[:-2], name))
    elif kind.isupper():
        defined[name] = where[:-2]
calls = {}
for caller, name in undefined:
    if name in defined and defined[name] != caller:
        calls.setdefault(caller, set()).add(defined[name])
folders = {}
for caller, called in calls.items():
    home = os.path.dirname(caller)
    folders.setdefault(home, set()).update(os.path.dirname(c) for c in called)
    folders[home].discard(home)

def components(edges):
    """Tarjan's strongly connected components, of more than one member."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in number:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            at = stack.index(node)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return sorted(c for c in found if len(c) > 1)

for what, edges in (("files", calls), ("folders", folders)):
    for members in components(edges):
        print(what, *members)
print("#", len(set(defined.values())), "files define", len(defined), "symbols", file=sys.stderr)
END
python3 -S "$W/circles.py" "$W/symbols" >"$W/found" 2>"$W/err"
[ $? -eq 0 ] && [ "$(wc -l <"$W/objects")" -gt 500 ] && [ "$(sed 's/^# \([0-9]*\) .*/\1/' "$W/err")" -gt 500 ]
ok $? "symbols of $(wc -l <"$W/objects") objects were read"
while read -r line; do echo "# $(($(echo "$line" | wc -w) - 1)) $line"; done <"$W/found"
if [ -n "$update" ]; then
    { echo "# files, and folders, that call each other in a circle: tests/circles.t --update"; cat "$W/found"; } >tests/circles.expected
fi
# within MEMBERS: all members of a component are of one that is expected.
grep -v '^#' tests/circles.expected >"$W/expected"
within=0
while read -r kind members; do
    known=$(grep "^$kind " "$W/expected" | while read -r _ others; do
        for member in $members; do case " $others " in *" $member "*) ;; *) continue 2 ;; esac; done
        echo yes
        break
    done)
    [ -n "$known" ] || { within=1; echo "# new, or larger than before: $kind $members" >&2; }
done <"$W/found"
ok $within "no circle is new, and none has grown"
[ $within -ne 0 ] || cmp -s "$W/found" "$W/expected"
ok $? "none has become smaller: else keep that with --update"
echo "1..$n"
exit $failed
