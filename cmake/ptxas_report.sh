#!/bin/sh
# ptxas_report.sh - runs nvcc and keeps beside the object, for tests/cuda_registers.t, what ptxas says of
# each kernel (.ptxas) and what the file was compiled from (.sources: ninja deletes the compiler's list).
#   ptxas_report.sh OBJECT COMMAND...
object=$1
shift
"$@" 2>"$object.ptxas"
status=$?
[ ! -f "$object.d" ] || cp "$object.d" "$object.sources"
sed '/are serialized/b; /^ptxas info/d; /bytes stack frame/d' "$object.ptxas" >&2
exit $status
