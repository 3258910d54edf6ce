#!/bin/sh
# doctor.t - the verb `doctor` on this machine, and on copies of /proc and /sys of others.
. "$(dirname "$0")/opening.sh"

# fields MACHINE EXPRESSION TEXT: Python's EXPRESSION of the report `r` holds.
fields() {
    "$T" doctor --quick --format json $1 >"$W/out" 2>"$W/err" &&
        python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert eval(sys.argv[2])' \
            "$W/out" "$2" 2>>"$W/err"
    ok $? "$3"
}
# put PATH TEXT: a file of the other machine.
put() {
    mkdir -p "$W/m/$(dirname "$1")"
    printf '%s\n' "$2" >"$W/m/$1"
}
other="--system $W/m"

fields "" "all(k in r for k in ('isa','tier','cores','clocks','governor','huge_pages','memory','power','advice'))" \
    "the fields that others read"
fields "" "r['cores']['online'] >= 1 and r['memory']['total_bytes'] > 1 << 28 and r['tier'] in r['tiers']" \
    "this machine has processors, memory and a tier"
"$T" doctor >"$W/out" 2>"$W/err"
[ $? -eq 0 ] && grep -q "^tier " "$W/out" && grep -q "read .* GB/s" "$W/out"; ok $? "text, with the memory's speed"

mkdir "$W/m"
fields "$other" "r['governor'] is None and r['memory']['total_bytes'] is None and r['isa'] == []" \
    "what is not there is null"
"$T" doctor $other >"$W/out" 2>"$W/err"
[ $? -eq 0 ] && grep -q "^isa  *not known$" "$W/out" && grep -q "^clocks  *not known$" "$W/out"; ok $? "and in words not known"
cpu=sys/devices/system/cpu
put proc/cpuinfo "processor	: 0
model name	: An Old One @ 2.00GHz
flags		: fpu avx2 fma avx512_vnni avx512_vnnix"
put $cpu/online 0-3
for i in 0 1 2 3; do put $cpu/cpu$i/topology/thread_siblings_list $((i % 2)),$((i % 2 + 2)); done
put proc/self/status "Cpus_allowed_list:	0-3"
put sys/fs/cgroup/cpu.max "max 100000"
put sys/fs/cgroup/memory.max 1073741824
put proc/loadavg "0.10 0.10 0.10 1/100 1"
put $cpu/cpu0/cpufreq/scaling_governor performance
put sys/kernel/mm/transparent_hugepage/enabled "always [madvise] never"
put proc/meminfo "MemTotal:        8388608 kB
MemAvailable:    4194304 kB
SwapTotal:       1048576 kB
SwapFree:        1048576 kB"
fields "$other" "r['isa'] == ['avx2', 'fma', 'avx512_vnni'] and r['cpu'].startswith('An Old One')" "names of instructions"
fields "$other" "r['round'].startswith('nothing is faster')" "a processor without fast products of bf16"
mv "$W/m/proc/cpuinfo" "$W/kept"
put proc/cpuinfo "processor	: 0
Features	: fp asimd evtstrm asimddp"
put proc/device-tree/model "A Small Computer 5"
fields "$other" "r['round'].startswith('nothing is faster')" "nor has an ARM processor without"
put proc/cpuinfo "processor	: 0
Features	: fp asimd evtstrm asimddp i8mm bf16"
fields "$other" "r['round'] == 'mixed and bf16 are faster than none'" "ARM with products of bf16"
for maker in AuthenticAMD GenuineIntel; do
    put proc/cpuinfo "vendor_id	: $maker
flags		: avx2 avx512f avx512_bf16"
    fields "$other" "('mixed and bf16 are faster' in r['round']) == ('$maker' == 'AuthenticAMD')" "pairs of $maker"
done
put proc/cpuinfo "vendor_id	: GenuineIntel
flags		: avx2 avx512f amx_bf16"
fields "$other" "r['round'].startswith('bf16x2, mixed and bf16')" "a tile unit"
put proc/cpuinfo "processor	: 0
Features	: fp asimd evtstrm asimddp"
fields "$other" "r['isa'] == ['asimd', 'asimddp'] and r['cpu'] == 'A Small Computer 5'" "an ARM processor, which has no name"
mv "$W/kept" "$W/m/proc/cpuinfo"
fields "$other" "(r['cores']['online'], r['cores']['physical'], r['cores']['threads_a_core']) == (4, 2, 2)" \
    "a core is counted once"
fields "$other" "r['memory']['total_bytes'] == 8 << 30 and r['memory']['limit_bytes'] == 1 << 30" "kB are 1024 bytes"
fields "$other" "r['huge_pages'] == 'madvise' and not [a for a in r['advice'] if 'AVX2' not in a]" \
    "a machine in order is given no advice"

# advice PATH TEXT PATTERN: with this file advice says so, and no other does.
advice() {
    mkdir -p "$W/m/$(dirname "$1")"
    [ ! -e "$W/m/$1" ] || cp "$W/m/$1" "$W/kept"
    put "$1" "$2"
    fields "$other" "len([a for a in r['advice'] if '''$3''' in a]) == 1 and len([a for a in r['advice'] if 'AVX2' not in a]) == 1" "advice: $3"
    rm "$W/m/$1"
    [ ! -e "$W/kept" ] || mv "$W/kept" "$W/m/$1"
}
advice $cpu/cpu0/cpufreq/scaling_governor powersave "cpupower frequency-set -g performance"
advice proc/cpuinfo "flags		: fma avx2 avx512f amx_bf16" "round = \"bf16x2\""
advice proc/loadavg "3.50 0 0" "3.5 of 4 processors busy"
advice sys/fs/cgroup/cpu.max "150000 100000" "may use 1.5 processors"
advice sys/kernel/mm/transparent_hugepage/enabled "always madvise [never]" "huge pages are off"
advice proc/meminfo "MemAvailable: 1024 kB
SwapTotal: 1048576 kB
SwapFree: 0 kB" "1024 MiB of memory are in swap"
advice sys/class/power_supply/ADP1/online 0 "on its battery"
advice var/lib/nvpmodel/status "pmode:0002" "power mode is 0002"
advice sys/firmware/acpi/platform_profile low-power "the power profile is 'low-power"
advice $cpu/cpu0/thermal_throttle/package_throttle_count 7 "lowered its clocks 7 times"
advice sys/devices/system/clocksource/clocksource0/current_clocksource hpet "the system's clock is 'hpet"
put $cpu/cpu0/cpufreq/cpuinfo_max_freq 4000000
advice $cpu/cpu0/cpufreq/scaling_max_freq 2000000 "limited to 2000 MHz of 4000"

# Files of nonsense are no crash.
for file in proc/cpuinfo proc/meminfo proc/loadavg $cpu/online sys/fs/cgroup/cpu.max; do
    head -c 20000 /dev/urandom >"$W/m/$file"
done
fields "$other" "'advice' in r" "noise is read without harm"
put $cpu/online "0-99999999999999999999,5"
put sys/fs/cgroup/cpu.max "1e999 0"
fields "$other" "'advice' in r" "numbers out of range"
"$T" doctor --system "$W/nowhere" >"$W/out" 2>"$W/err"
[ $? -eq 3 ] && [ ! -s "$W/out" ] && [ "$(wc -l <"$W/err")" -eq 1 ] && grep -q "nowhere: No such" "$W/err"
ok $? "a folder that is not there is no machine in order"
: >"$W/file"; "$T" doctor --system "$W/file" >"$W/out" 2>"$W/err"
[ $? -eq 3 ] && [ ! -s "$W/out" ] && grep -q "file: is no folder" "$W/err"; ok $? "nor is a file"
"$T" doctor x >"$W/out" 2>"$W/err"; [ $? -eq 2 ]; ok $? "an argument too many"

echo "1..$n"
exit "$failed"
