#!/bin/sh
# bench.t - the verb bench: rows and fields that others rely on, refusals with their exit code.
. "$(dirname "$0")/opening.sh"
demo=pipelines/demo_metaworld.lua
few="--frames 4 --warmup 2 --rounds 2"
json=$("$T" bench $demo --policy oxygen,isolated --sweep k=2,4 $few --format json)
ok $? "it ends well"
for field in machine commit command rows frame_us p999 action_us action_hz tokens_s mean_batch \
    host_us peak_bytes age_us worst launches allocations repeat; do
    case $json in *"\"$field\""*) ok 0 "the report has $field" ;; *) ok 1 "the report has $field" ;; esac
done
[ "$(printf '%s\n' "$json" | grep -c '"policy": ')" = 3 ]
ok $? "a row for each value, one for the policy without that parameter"
[ "$(printf '%s\n' "$json" | grep '"actions": "' | sort -u | wc -l)" = 1 ] &&
    ! printf '%s\n' "$json" | grep -q '"equal": false'
ok $? "actions are the same in every turn and row"
# Weights that are read faster than memory gives lie in a cache: they have no share of what it gives.
printf '%s\n' "$json" | python3 -S -c "import json, sys; m = json.load(sys.stdin)['memory']
assert m['in_cache'] == (m['step1_bytes_s'] > m['read_bytes_s'] > 0) and (m['fraction'] is None) == m['in_cache'], m
assert m['in_cache'] or 0 < m['fraction'] <= 1, m" 2>"$W/err"
ok $? "no share of memory's rate is more than all"
"$T" bench $demo $few | grep '^memory:' >"$W/out"
grep -qE "from a cache, for memory gives [0-9.]+ GB/s here$|, [0-9]{1,2}0? % of the [0-9.]+ GB/s" "$W/out"
ok $? "nor in the text"
# Reports say what the model's words were: those of the file, of --set and of --dtype.
printf '%s\n' "$json" | python3 -S -c "import json, sys; s = json.load(sys.stdin)['settings']
assert s == {'model.dtype': 'bf16', 'model.quantize': 'none', 'model.quantize_head': 'none', 'model.round': 'none'}, s" 2>"$W/err"
ok $? "json has the model's settings"
"$T" bench $demo $few --set model.quantize=int8 --set model.round=bf16 >"$W/out" 2>"$W/err" &&
    grep -q "^settings: model.dtype=bf16 model.quantize=int8 model.quantize_head=none model.round=bf16$" "$W/out"
ok $? "text has them, as --set says"
"$T" bench $demo $few --set model.quantize=int8 --dtype f32 >"$W/out" 2>"$W/err" && grep -q "^settings: model.dtype=f32 " "$W/out"
ok $? "and as --dtype says"
"$T" bench $demo --policy oxygen --sweep speed=1,2 $few >/dev/null 2>&1
[ $? = 2 ]; ok $? "a parameter that nobody has is refused"
"$T" bench $demo --node tlak $few >/dev/null 2>&1
[ $? = 2 ]; ok $? "an unknown node is refused"
"$T" bench $demo $few | grep -q 'worst frame'
ok $? "the worst frame is printed"

# Texts that begin with a new instruction alone are over before the frames that count.
sed 's/every(1)/on_change()/' $demo >"$W/changes.lua"
mkdir -p "$W/robots" && cp pipelines/robots/metaworld.lua "$W/robots/"
of="--inputs pipelines/checkpoints/metaworld/episodes/faucet_close.jsonl --frames 2 --rounds 1 --policy oxygen"
"$T" bench "$W/changes.lua" $of --warmup 6 >"$W/out" 2>"$W/err"
grep -q 'no tok/s: all [1-9][0-9]* tokens were made in the warm-up' "$W/out"
ok $? "texts of the warm-up are no rate of 0"
# rates WHAT ASSERTION ARGUMENTS...: of the row r
rates() {
    what=$1 of_row=$2
    shift 2
    "$T" bench "$W/changes.lua" $of "$@" --format json >"$W/out" 2>"$W/err" &&
        python3 -S -c "import json, sys; r = json.load(open(sys.argv[1]))['rows'][0]; assert $of_row, r" "$W/out" 2>>"$W/err"
    ok $? "$what"
}
rates "json, too" "r['tokens_s'] == r['text_frames'] == 0 < r['warmup_tokens']" --warmup 6
rates "a shorter warm-up counts the rest of them" "r['tokens_s'] > 0 < r['text_frames'] and r['warmup_tokens'] == 4" --warmup 1
sed 's/local k = F.params.k/if F.index > 0 then return end\n    &/' policies/oxygen.lua >"$W/starves.lua"
of="${of%oxygen}$W/starves.lua"
rates "texts that are given nothing live" "r['tokens_s'] == 0 and r['text_frames'] == 2 and r['warmup_tokens'] == 4" --warmup 1
"$T" bench "$W/changes.lua" $of --warmup 1 >"$W/out" 2>"$W/err" &&
    ! grep -q 'no tok/s' "$W/out" && grep -q '^oxygen .* 0\.0  *0\.00 ' "$W/out"
ok $? "whose rate is 0"

# --compare
printf '%s\n' "$json" >"$W/before"
python3 - "$W/before" "$W/slow" "$W/other" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
r["rows"][0]["frame_us"]["p50"] *= 1.5
r["machine"]["cores"] += 1
json.dump(r, open(sys.argv[2], "w"))
r["rows"][0]["policy"] = "mine"
json.dump(r, open(sys.argv[3], "w"))
END
compare() { # compare CODE TEXT ARGUMENTS...
    want=$1 text=$2
    shift 2
    "$T" bench --compare "$@" >"$W/out" 2>"$W/err"
    [ $? -eq "$want" ]; ok $? "$text: exit $want"
}
compare 0 "a report and itself" "$W/before" "$W/before" --fail 0.1
! grep -q "not alike" "$W/out" && ! grep -E "p50|p99|max" "$W/out" | grep -vq " 1.000$"; ok $? "nothing differs"
compare 1 "half as slow again" "$W/before" "$W/slow" --fail 40
grep -q " 1.500$" "$W/out" && grep -q "not alike: cores" "$W/out"; ok $? "by how much, and on another machine"
compare 0 "within what is allowed" "$W/before" "$W/slow" --fail 60
compare 0 "faster" "$W/slow" "$W/before" --fail 1
compare 0 "rows of one report alone" "$W/before" "$W/other" --format json
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert [a["in"] for a in r["alone"]] == ["before", "after"], r' "$W/out"
ok $? "are named"
compare 3 "no report" "$W/before" pipelines/demo_metaworld.lua
printf '{"rows": [{"policy": 1}], "machine": {}}' >"$W/none"
compare 3 "a report without times" "$W/before" "$W/none"; grep -q "none: this is no report" "$W/err"; ok $? "says which"
compare 2 "one report" "$W/before"

# --html: one page, whatever the reports say
python3 - "$W/before" "$W/evil1" "$W/evil2" <<'END'
import json, sys
evil = "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e"
for path, faster in zip(sys.argv[2:], (1, 2)):
    r = json.load(open(sys.argv[1]))
    r["rows"][0]["policy"], r["machine"]["cpu"], r["machine"][evil] = evil, evil, evil
    r["rows"][0]["nodes"][evil] = {"p50": 1000 * faster, "p99": 1234 * faster, "max": 2500 * faster}
    r["rows"][0]["action_hz"], r["command"] = 12.5 * faster, "tectum bench %d" % faster
    json.dump(r, open(path, "w"))
END
compare 0 "as a page" "$W/evil1" "$W/evil2" --html "$W/page.html"
grep -q "after / before" "$W/out"; ok $? "the text is printed, too"
! grep -Eqi "<script|<img|<link|onerror=[^a]|src=\"|href=|url\(|@import" "$W/page.html" && [ "$(tail -1 "$W/page.html")" = "</body></html>" ]
ok $? "it has no script, asks for nothing, and is whole"
grep -q "&lt;/style&gt;&lt;/title&gt;&lt;script&gt;" "$W/page.html" && ! grep -q "$(printf '\342\200\256')" "$W/page.html"
ok $? "hostile texts are text"
for text in "1.234 ms" "2.468 ms" 12.500 25.000 "tectum bench 1" "tectum bench 2" p50 p99 max missed tokens_s commit; do
    grep -qF ">$text<" "$W/page.html"; ok $? "it says $text"
done
compare 3 "a page that cannot be written" "$W/before" "$W/before" --html "$W/none/page.html"
"$T" bench $demo $few --html "$W/page2.html" >/dev/null 2>&1
[ $? = 2 ] && [ ! -e "$W/page2.html" ]; ok $? "without --compare there is no page"
"$T" bench $demo pipelines/pi05_droid.lua >/dev/null 2>&1
[ $? = 2 ]; ok $? "two pipelines are refused"
echo "1..$n"
exit $failed
