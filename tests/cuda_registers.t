#!/bin/sh
# cuda_registers.t - what each CUDA kernel takes of a multiprocessor stays within its limits.
#
#   sh tests/cuda_registers.t             sm_80 and sm_90a: what the release build's compiler said, compare
#   sh tests/cuda_registers.t --all       for each device of the table: four times the time
#   sh tests/cuda_registers.t --devices "100a 110a"   for these
#   sh tests/cuda_registers.t --update    the limits become what the compiler says now, for all
#   sh tests/cuda_registers.t norm gemm   these files only
#
# tests/cuda_registers.expected has a line for each kernel: for each device the registers of a
# thread, in steps of 8 as the hardware gives them out, and bytes of static shared memory. A kernel
# with a stack, or that spills, fails on any device, and so does one in which ptxas waits behind each
# product of a warp group; one without a line fails, and so does a line without a kernel. Needs nvcc.
# A file whose report in build/release is older than the sources, or that was built for other devices,
# is compiled here.
cd "$(dirname "$0")/.." || exit 1
table=tests/cuda_registers.expected all="80 87 89 90a 100a 110a 120" devices="80 90a"
reports=build/release/CMakeFiles/tectum_cuda.dir/kernels/cuda
update=
case ${1:-} in
--all) devices=$all; shift ;;
--devices) devices=$2; shift 2 ;;
--update) devices=$all update=1; shift ;;
esac

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
    [ -z "$update" ] || { echo "cuda_registers.t: there is no nvcc" >&2; exit 1; }
    echo "1..0 # SKIP there is no nvcc"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
codes=$(cmake "-DTECTUM_CUDA_ARCHITECTURES=$(echo "$devices" | sed 's/ /-real;/g; s/$/-real/')" -P cmake/cuda_codes.cmake) ||
    exit 1
names=${*:-$(for file in kernels/cuda/*.cu; do basename "$file" .cu; done)}

# What ptxas reports for a file, as lines of the table (spills and stack behind them). The options
# are those of cmake/cuda.cmake.
cat >"$work/measure" <<'EOF'
name=$1 nvcc=$2 work=$3 report=$4/$1.cu.o.ptxas codes=$5
shift 5
for device in "$@"; do
    grep -q "for 'sm_$device'" "$report" 2>/dev/null || report=
done
sources=$(sed 's/^[^:]*: *//; s/\\$//' "${report%ptxas}sources" 2>/dev/null)
# from the build's folder: a compiler's cache may name them from there
if [ -n "$sources" ] && [ -z "$(cd build/release && find $sources -newer "../../$report" 2>&1 | head -n 1)" ]; then
    cp "$report" "$work/$name.log"
else "$nvcc" -std=c++17 -O3 -DNDEBUG -fmad=false -I. $codes -fatbin -t 2 \
    -Xptxas -v -Xcompiler -fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
    "kernels/cuda/$name.cu" -o "$work/$name.fatbin" >"$work/$name.log" 2>&1
fi || { echo "$name does-not-compile"; exit; }
c++filt <"$work/$name.log" | awk -v name="$name" '
    /Compiling entry function/ {
        split($0, part, "\047")
        kernel = part[2]; device = part[4]
        sub(/^void /, "", kernel)
        depth = 0 # the parameters begin at the first parenthesis outside of <>
        for (i = 1; i <= length(kernel); i++) {
            c = substr(kernel, i, 1)
            if (c == "<") depth++
            if (c == ">") depth--
            if (c == "(" && depth == 0) { kernel = substr(kernel, 1, i - 1); break }
        }
    }
    /bytes stack frame/ { spills = $1 + $5 + $9 }
    /Used [0-9]+ registers/ {
        registers = shared = 0
        for (i = 1; i < NF; i++) {
            if ($i == "Used") registers = int(($(i + 1) + 7) / 8) * 8
            if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared = $i
        }
        printf "%-12s %-7s %3d %6d %s | %d\n", name, device, registers, shared, kernel, spills
    }'
EOF

for name in $names; do echo "$name"; done |
    xargs -I{} -P "$(nproc 2>/dev/null || echo 2)" sh -c \
        "sh '$work/measure' {} '$nvcc' '$work' '$reports' '$codes' $devices >'$work/{}.lines'"
# One line for each kernel: file, registers for each device, shared memory, kernel; those with a fault apart.
: >"$work/faults"
for name in $names; do cat "$work/$name.lines"; done | awk -v devices="$devices" -v faults="$work/faults" '
    $2 == "does-not-compile" { print; next }
    {
        split($0, half, " [|] "); kernel = half[1]
        sub(/^[^ ]+ +[^ ]+ +[0-9]+ +[0-9]+ /, "", kernel)
        kernel = sprintf("%-12s", $1) "\t" kernel
        registers[kernel, $2] = $3
        if ($4 > shared[kernel]) shared[kernel] = $4
        if (half[2] > 0) spills[kernel] = spills[kernel] " " half[2] " bytes on " $2
        seen[kernel] = 1
    }
    END {
        n = split(devices, device, " ")
        for (kernel in seen) {
            split(kernel, part, "\t"); line = part[1]
            for (i = 1; i <= n; i++) line = line sprintf(" %5d", registers[kernel, "sm_" device[i]])
            printf "%s %6d %s\n", line, shared[kernel], part[2]
            if (kernel in spills) print part[1] " " part[2] ": a stack or spills:" spills[kernel] >faults
        }
    }' >"$work/now"
for name in $names; do # C7510 and its like: the products are right, but one after the other
    c++filt <"$work/$name.log" | sed -n "s/^.*\(wgmma[a-z_.]* instructions are serialized\)/$name  \1/p" | sort -u
done >>"$work/faults"

if [ -n "$update" ]; then
    ! grep does-not-compile "$work/now" >&2 && ! grep . "$work/faults" >&2 || exit 1
    { [ $# = 0 ] || awk -v names=" $* " '!/^#/ && !index(names, " " $1 " ")' "$table"
      cat "$work/now"; } | LC_ALL=C sort -k1,1 -k10 >"$work/table"
    { printf '# %-10s' file
      for device in $devices; do printf ' %5s' "sm_$device"; done
      echo " shared kernel"; cat "$work/table"; } >"$table"
    exit 0
fi

n=0 bad=0
for name in $names; do
    n=$((n + 1))
    wrong=$(awk -v name="$name" -v devices="$devices" -v all="$all" '
        function kernel(line) { sub(/^[^ ]+( +[0-9]+)+ /, "", line); return line }
        $1 != name { next }
        FILENAME == ARGV[1] { limits[kernel($0)] = $0; next }
        $2 == "does-not-compile" { print name ".cu does not compile"; failed = 1; exit }
        {
            k = kernel($0); seen[k] = 1
            if (!(k in limits)) { print k ": no line in the table"; next }
            split(limits[k], limit, " +"); n = split(devices, device, " ")
            columns = split(all, known, " ")
            for (i = 1; i <= columns; i++) most["sm_" known[i]] = limit[i + 1] + 0
            for (i = 1; i <= n; i++)
                if ($(i + 1) > most["sm_" device[i]])
                    print k ": " $(i + 1) " registers on sm_" device[i] ", the limit is " most["sm_" device[i]]
            if ($(n + 2) > limit[columns + 2] + 0)
                print k ": " $(n + 2) " bytes of shared memory, the limit is " limit[columns + 2]
        }
        END {
            for (k in limits)
                if (!failed && !(k in seen)) print k ": in the table, but not compiled"
        }
    ' "$table" "$work/now")
    wrong=$wrong$(sed -n "s/^$name  *//p" "$work/faults")
    count=$(grep -c "^$name " "$work/now")
    if [ -z "$wrong" ]; then echo "ok $n - $name.cu: kernels within their limits: $count"
    else bad=1; echo "not ok $n - $name.cu"; printf '%s\n' "$wrong" | sed 's/^/# /' >&2
        grep -E 'error|warning' "$work/$name.log" | head -n 5 >&2; fi
done
echo "1..$n"
exit $bad
