#!/bin/sh
# pages.t - the manual pages and the scripts of shell completion, made from the tables of verbs.
. "$(dirname "$0")/opening.sh"

# script SHELL: the shell reads it without an error.
script() {
    "$T" completion "$1" >"$W/$1" 2>"$W/err"
    if ! command -v "$1" >/dev/null 2>&1; then
        n=$((n + 1))
        echo "ok $n - $1 reads its script # SKIP no $1 here"
        return
    fi
    check "$1 reads its script" "$1" -n "$W/$1"
}
for shell in bash zsh fish; do script $shell; done
"$T" completion csh >"$W/out" 2>"$W/err"
[ $? -eq 2 ] && grep -q "'csh' is none of bash|fish|zsh" "$W/err"; ok $? "a shell that is none is refused"

# completes WANTED WORDS...: what bash offers for the last of the words.
completes() {
    wanted=$1
    shift
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tectum
             printf "%s\n" "${COMPREPLY[@]}"' - "$W/bash" "$@" >"$W/out" 2>"$W/err"
    [ "$(tr '\n' ' ' <"$W/out")" = "$wanted " ]; ok $? "bash completes '$*' to '$wanted'"
}
completes check tectum che
completes "text json" tectum run --format ''
completes --random-weights tectum run --random-w
completes "dot svg html mermaid json text" tectum graph -T ''
completes "set status" tectum policy s
completes "check completion" tectum man c
completes README.md tectum inspect READ
for verb in doctor probe demo; do completes "" tectum $verb READ; done # no argument of theirs is a file
completes "cpu cuda" tectum run --device ''
completes README.md tectum serve --key READ
for option in "graph --list" "check --explain" "run --embodiment" "explain --frame" "explain --miss" "bench --node" \
    "serve --host" "bench --sweep" "serve -p" "trace --last" "run --set" "run --param" "run --threads"; do
    completes "" tectum $option READ
done
completes "full small tiny" tectum check --size ''
completes "edf" tectum run --policy ed
completes oxygen tectum bench --policy ox
completes oxygen tectum policy load ox
completes "kernels" tectum graph --list ker
completes "h100" tectum graph --roofline h100
completes "pipelines/pi05_droid.lua" tectum check pipelines/pi05_d
completes "pipelines" tectum run pip
completes "pipelines/checkpoints/metaworld_act pipelines/checkpoints/metaworld_aged" tectum run --weights pipelines/checkpoints/metaworld_a
completes "" tectum run --frames ''
completes "ref" tectum run --tier re
mkdir -p "$W/some/folder" && touch "$W/some/day.mcap" "$W/some/mine.lua" "$W/some/notes.txt" "$W/some/robot.costs"
completes "$W/some/day.mcap $W/some/folder" tectum replay "$W/some/"
completes "$W/some/mine.lua $W/some/folder" tectum simulate --policy "$W/some/"
completes "$W/some/mine.lua $W/some/folder" tectum policy test "$W/some/"
completes "$W/some/mine.lua $W/some/day.mcap $W/some/folder" tectum profile "$W/some/"
completes "$W/some/robot.costs $W/some/folder" tectum simulate --costs "$W/some/"
completes "$W/some/folder" tectum init "$W/some/"
"$T" completion zsh | grep -q "compadd -- actionflow .*oxygen" && "$T" completion zsh | grep -q 'checkpoint.*:weights:_files -/'
ok $? "zsh has the names of the policies, and folders"
"$T" completion fish | grep -q "seen_subcommand_from run' -l policy -x -a 'actionflow .*oxygen.* (__fish_complete_suffix .lua)'"
ok $? "so has fish"

# Manual pages: every verb has one, and each of its options is in it.
mkdir "$W/man"
check "man -o writes pages" "$T" man -o "$W/man"
for verb in $("$T" graph --list verbs --format json | sed -n 's/.*"name": "\([a-z]*\)".*/\1/p'); do
    "$T" "$verb" --help | sed -nE 's/^  (-., )?--([a-z0-9-]+).*/\2/p' | while read -r option; do
        # troff writes a dash as \-
        grep -qF -- "\\-\\-$(echo "$option" | sed 's/-/\\-/g')" "$W/man/tectum-$verb.1" ||
            echo "$verb --$option"
    done >"$W/out"
    [ -s "$W/man/tectum-$verb.1" ] && [ ! -s "$W/out" ]; ok $? "the page of $verb has its options"
    grep -qF "tectum\\-$verb" "$W/man/tectum.1"; ok $? "the program's page names $verb"
done
if command -v groff >/dev/null 2>&1; then
    groff -man -Tutf8 -ww -z "$W"/man/*.1 >"$W/out" 2>&1
    [ ! -s "$W/out" ]; ok $? "troff has no warning of the pages"
fi
"$T" man nothing >"$W/out" 2>"$W/err"
[ $? -eq 2 ]; ok $? "a verb that is none is refused"
"$T" man -o "$W/nowhere" >"$W/out" 2>"$W/err"
[ $? -eq 3 ] && grep -q "nowhere" "$W/err"; ok $? "a folder that is none is refused"
check "pages are put in place" sh tools/install_pages.sh "$T" "$W/share"
[ -s "$W/share/man/man1/tectum-run.1" ] && [ -s "$W/share/zsh/site-functions/_tectum" ]
ok $? "where man and zsh look for them"

echo "1..$n"
exit "$failed"
