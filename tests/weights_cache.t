#!/bin/sh
# weights_cache.t - packed weights kept between starts, from the outside: who makes the file, who uses it, and
# that frames are the same.
# usage: tests/weights_cache.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
C=$W/checkpoint
cp -r pipelines/checkpoints/metaworld "$C" && chmod -R u+w "$C"
export XDG_CACHE_HOME="$W/cache"
# On the CPU: on others the file has another layout, and its place in a folder is the same.
P="--weights $C --device cpu pipelines/demo_metaworld.lua"
files() { find "$1" -name 'tectum-*' | wc -l; }
# frames FILE OPTION...: what the pipeline does with these options; what is said in err.
frames() { actions_of "$@" $P --policy isolated; }
said() { grep -q "$1" "$W/err"; }
silent() { ! said "weights:"; }

frames plain; ok $? "frames without a file"
silent && [ "$(files "$W")" = 0 ]; ok $? "none is made unasked, and nothing said"
"$T" pack $P >"$W/out" 2>"$W/err" && said "weights: kept as $C/tectum-" && [ "$(files "$C")" = 1 ]
ok $? "pack makes one beside the checkpoint"
"$T" pack $P 2>"$W/err" && said "checked in" && [ "$(files "$W")" = 1 ]; ok $? "again it is only checked"
frames packed && said "weights: $C/tectum-.*checked in" && cmp -s "$W/plain" "$W/packed"
ok $? "run uses it, with the same actions"
frames off --weights-cache off && silent && cmp -s "$W/plain" "$W/off"
ok $? "off: it is not looked at"
"$T" run $P --dtype f32 -n 1 --random-inputs 1 >/dev/null 2>"$W/err" && silent
ok $? "another precision has another file, which is not there"
"$T" pack $P -o "$W/folder" 2>"$W/err" && said "kept as $W/folder/tectum-" && [ "$(files "$W/folder")" = 1 ]
ok $? "pack -o is the folder"
"$T" pack $P --dtype f32 2>"$W/err" && [ "$(files "$C")" = 2 ]; ok $? "both lie side by side"

mkdir "$W/root" && cp -R pipelines policies "$W/root" && echo "-- edited" >>"$W/root/pipelines/models/common/pi_family.lua"
[ -f pipelines/models/common/pi_family.lua ] && "$T" pack $P --root "$W/root" --weights-cache "$W/other" 2>"$W/err" &&
    "$T" pack $P --weights-cache "$W/other" 2>>"$W/err" && [ "$(files "$W/other")" = 2 ]
ok $? "a description that was edited, in a file that it includes, has a file of its own"

touch "$C/model.safetensors"
frames stale && said "is of another checkpoint, description or version; the checkpoint is read instead" &&
    cmp -s "$W/plain" "$W/stale"
ok $? "a checkpoint that was touched is read"
frames renewed --weights-cache auto && said "kept as $C" && cmp -s "$W/plain" "$W/renewed" &&
    frames again && said "checked in" && [ "$(files "$C")" = 2 ]
ok $? "auto makes the file again, in place of the old one"

rm "$C"/tectum-*
frames dir --weights-cache "$W/of/robot" && said "kept as $W/of/robot/tectum-" && [ "$(files "$C")" = 0 ] &&
    frames dir2 --weights-cache "$W/of/robot" && said "checked in" && cmp -s "$W/plain" "$W/dir2"
ok $? "a folder, which is made"
frames none --weights-cache /proc/none/x && said "weights: not kept" && cmp -s "$W/plain" "$W/none"
ok $? "a folder that cannot be made is a line, and frames run"
"$T" pack --weights-cache /proc/none/x $P 2>"$W/err"; [ $? -eq 3 ]; ok $? "for pack it is a failure"
"$T" pack --random-weights 1 --size tiny pipelines/demo_metaworld.lua 2>"$W/err"
[ $? -eq 2 ] && said "there would be no file"; ok $? "random weights have none"
(ulimit -f 1000; frames limit --weights-cache "$W/bounded") && said "the limit of file sizes is" &&
    cmp -s "$W/plain" "$W/limit" && [ "$(files "$W/bounded")" = 0 ]
ok $? "a limit of file sizes is a line"

# Where the checkpoint's folder cannot be written to, the user's folder for caches; root always can.
if [ "$(id -u)" != 0 ]; then
    chmod a-w "$C"
    frames user --weights-cache auto && said "kept as $XDG_CACHE_HOME/tectum/tectum-" && frames user2 &&
        said "$XDG_CACHE_HOME/tectum/tectum-.*checked" && cmp -s "$W/plain" "$W/user2"
    ok $? "beside a checkpoint that cannot be written to there is the user's folder"
    chmod u+w "$C"
else
    ok 0 "the user's folder # SKIP root may write everywhere"
fi
if mkdir "$W/small" && mount -t tmpfs -o size=1m none "$W/small" 2>/dev/null; then
    frames full --weights-cache "$W/small" && said "and the disk has" && cmp -s "$W/plain" "$W/full" &&
        [ -z "$(ls -A "$W/small")" ]
    ok $? "a full disk is a line, and nothing is left on it"
    umount "$W/small"
else
    ok 0 "a full disk # SKIP nothing may be mounted here"
fi

# Two starts at once, and one that is killed while it writes.
for i in 1 2 3; do "$T" pack --weights-cache "$W/both" $P 2>"$W/err$i" & pids="$pids $!"; done
wait $pids
"$T" pack --weights-cache "$W/both" $P 2>"$W/err" && said "checked in" && [ "$(ls -A "$W/both" | wc -l)" = 1 ]
ok $? "of starts at once one file is left, and it is whole"
rm "$W/both"/*
for wait in 0.01 0.02 0.03 0.05; do
    "$T" pack --weights-cache "$W/both" $P 2>/dev/null & pid=$!
    sleep $wait
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
done
"$T" pack --weights-cache "$W/both" $P 2>"$W/err" && [ "$(files "$W/both")" = 1 ]
ok $? "what is killed is in nobody's way"
echo "1..$n"
exit $failed
