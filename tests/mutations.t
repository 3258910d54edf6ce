#!/bin/sh
# mutations.t - each line of tests/mutations.txt is still a mistake that can be made: its edit changes its file.
#
# That tests notice them is mutate_cuda.sh's matter, which takes long; a line that the source has outgrown shows here.
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
grep -v -e '^#' -e '^$' tests/mutations.txt >"$work/lines"
while read -r line; do
    rest=${line#* :: }
    file=${rest%% :: *} edit=${rest##* :: }
    sed "$edit" "${file%% > *}" >"$work/mutant" 2>"$work/why" || cat "$work/why"
    ! cmp -s "${file%% > *}" "$work/mutant" || echo "the edit changes nothing: $line"
    [ -e "${file##* > }" ] || echo "no such file: $line"
done <"$work/lines" >"$work/stale"
if [ -s "$work/lines" ] && [ ! -s "$work/stale" ]; then
    echo "ok 1 - each of $(wc -l <"$work/lines") mistakes can be made"
else
    echo "not ok 1 - each mistake can be made"
    sed 's/^/# /' "$work/stale"
fi
echo "1..1"
[ ! -s "$work/stale" ]
