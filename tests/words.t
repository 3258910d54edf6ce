#!/bin/sh
# words.t - nothing left over: no notes to oneself, no paths of one machine, no stray white space.
cd "$(dirname "$0")/.." || exit 1
notes='\<(TO''DO|FIX''ME|XX''X)\>'
paths='(^|[^A-Za-z0-9_.$}~-])/(wo''rk|ro''ot|fa''rm|ho''me/[a-z]+)/'
n=0 bad=0

# Text files of the tree, golden data apart: what git has or would add, else what lies there.
files() {
    if git rev-parse --git-dir >/dev/null 2>&1; then git ls-files -co --exclude-standard
    else find . -type f ! -path './build/*' ! -path './.git/*' | sed 's|^\./||'; fi |
        grep -vE '^tests/golden/|\.svg$|/tables/|^LICENSE$' | while read -r file; do
            [ ! -f "$file" ] || printf '%s\0' "$file"; done
}
check() {
    n=$((n + 1))
    hits=$(files | xargs -0 grep -nIE "$2" /dev/null | head -20)
    if [ -z "$hits" ]; then echo "ok $n - $1"
    else bad=1; echo "not ok $n - $1"; printf '%s\n' "$hits" | sed 's/^/# /' >&2; fi
}
check "no notes to oneself" "$notes"
check "no paths of one machine" "$paths"
check "no white space at the end of a line" '[[:blank:]]+$'
echo "1..$n"
exit $bad
