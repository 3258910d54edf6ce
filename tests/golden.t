#!/bin/sh
# golden.t - the judge's data is as it was received: every file, and no other.
# After adding a family: (cd tests/golden && find . -type f | LC_ALL=C sort | xargs sha256sum) >tests/golden.sha256
cd "$(dirname "$0")/golden" || exit 1
n=0 bad=0
report() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"
    else bad=1; echo "not ok $n - $1"; printf '%s\n' "$2" | head -20 | sed 's/^/# /' >&2; fi
}
for family in act demo encoders groot images keep openvla pi qwen safetensors smolvla text tokenizers; do
    report "family $family is there" "$([ -f "$family/README.md" ] || echo "$family/README.md is missing")"
done
report "every file is unchanged" "$(sha256sum --check --quiet ../golden.sha256 2>&1)"
report "there is no other file" "$(find . -type f | LC_ALL=C sort | {
    list=$(cat)
    sed 's/^[0-9a-f]*  //' ../golden.sha256 | LC_ALL=C sort | { known=$(cat)
        printf '%s\n' "$list" "$known" "$known" | LC_ALL=C sort | uniq -u; }; })"
echo "1..$n"
exit $bad
