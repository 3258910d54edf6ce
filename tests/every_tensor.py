"""every_tensor.py - copies of golden cases that must fail: with one expected tensor more, with every
expected tensor changed, and with one value of each changed, but for those compared in part.

usage: every_tensor.py PROGRAM FOLDER CASE...; FOLDER is empty, and the copies are made in it.
Prints three lines of TAP for each CASE."""

import json
import os
import struct
import subprocess
import sys

EXTRA = "a tensor that no judge knows"
SIZES = {"F32": 4, "F64": 8, "BOOL": 1, "U8": 1, "I32": 4, "BF16": 2, "I16": 2, "U16": 2}


def read(path):
    """Names in order, each with (dtype, shape, bytes), of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    n = struct.unpack("<Q", data[:8])[0]
    header, data = json.loads(data[8 : 8 + n]), data[8 + n :]
    header.pop("__metadata__", None)
    return {k: (v["dtype"], v["shape"], data[slice(*v["data_offsets"])]) for k, v in header.items()}


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.write(b"".join(data for _, _, data in tensors.values()))


def changed(dtype, data):
    """Other values of the same dtype, farther off than any rounding: numbers twice as far from zero
    and one more, of the rest a high bit, of token ids the lowest."""
    if dtype in ("F32", "F64"):
        code, most = {"F32": ("f", 3.0e38), "F64": ("d", 1.0e300)}[dtype]
        values = struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)
        others = [2 * x + (1 if x >= 0 else -1) if abs(x) < most / 4 else 0.0 for x in values]
        return struct.pack(f"<{len(others)}{code}", *others)
    size, at, mask = {"BOOL": (1, 0, 1), "U8": (1, 0, 64), "I32": (4, 0, 1), "BF16": (2, 1, 128),
                      "I16": (2, 1, 64), "U16": (2, 1, 64)}[dtype]
    out = bytearray(data)
    for i in range(at, len(out), size):
        out[i] ^= mask
    return bytes(out)


def link_all(source, target, without):
    os.makedirs(target)
    for name in os.listdir(source):
        if name != without:
            os.symlink(os.path.join(os.path.abspath(source), name), os.path.join(target, name))


def copy(case, folder, tensors):
    """The case with other expected tensors, beside its siblings: cases share files."""
    family, name = os.path.split(case)
    link_all(family, folder, name)
    link_all(case, os.path.join(folder, name), "expected.safetensors")
    write(os.path.join(folder, name, "expected.safetensors"), tensors)
    return os.path.join(folder, name)


def verify(program, case):
    """Exit code, checks that are not ok with their notes, tensors that nobody need compare, and how much of
    a tensor is compared where it is not all."""
    done = subprocess.run([program, "verify", "--format", "json", case], capture_output=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    passed = {x["check"] for x in lines if x.get("note", "").startswith("not compared")}
    parts = {x["check"]: (x["compared"], x["values"]) for x in lines if "values" in x}
    return done.returncode, {x["check"]: x.get("note") for x in lines if not x["ok"]}, passed, parts


def one_more(program, folder, case):
    tensors = read(os.path.join(case, "expected.safetensors"))
    tensors[EXTRA] = ("F32", [2], bytes(8))
    code, wrong, _, _ = verify(program, copy(case, folder, tensors))
    return code == 1 and EXTRA in wrong, f"exit {code}, not ok: {wrong}"


def every_one_changed(program, folder, case):
    tensors = read(os.path.join(case, "expected.safetensors"))
    others = {k: (d, s, changed(d, b)) for k, (d, s, b) in tensors.items()}
    code, wrong, passed, _ = verify(program, copy(case, folder, others))
    unseen = taken(tensors, passed | set(wrong))
    return code == 1 and not unseen, f"exit {code}, taken as right: {unseen}"


def taken(tensors, seen):
    """Those that were taken as right. "processing." stands before a tensor of what is around the model."""
    return [k for k in tensors if not {k, "processing." + k} & seen]


def changed_at(dtype, data, share):
    """One value changed, at so much of the way from the first to the last."""
    size = SIZES[dtype]
    at = round(share * (len(data) // size - 1)) * size
    return data[:at] + changed(dtype, data[at : at + size]) + data[at + size :]


def one_value_changed(program, folder, case):
    """The first value of every tensor, the last, and one between."""
    tensors = read(os.path.join(case, "expected.safetensors"))
    some = {k for k, (_, _, b) in tensors.items() if b}
    why, unneeded = [], None
    for share in (0, 0.37, 1):
        others = {k: (d, s, changed_at(d, b, share) if k in some else b) for k, (d, s, b) in tensors.items()}
        code, wrong, passed, parts = verify(program, copy(case, f"{folder}at{share}", others))
        wrong = set(wrong)
        unseen = taken(some, passed | wrong | set(parts))
        if code != 1 or unseen:
            why.append(f"at {share} of each: exit {code}, taken as right: {unseen}")
        bad = {k: of for k, of in parts.items() if not 0 < of[0] < of[1] or k not in tensors}
        if bad:
            why.append(f"not a part: {bad}")
        unneeded = set(parts) & wrong if unneeded is None else unneeded & wrong
    if unneeded:  # each of their values that was tried is compared
        why.append(f"compared whole, and called a part: {unneeded}")
    return not why, why


def main():
    program, folder, cases = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    n = failed = 0
    for case in cases:
        for what, check in (("one tensor more", one_more), ("all changed", every_one_changed),
                            ("one value of each changed", one_value_changed)):
            n += 1
            good, why = check(program, os.path.join(folder, str(n)), case)
            failed += not good
            print("ok" if good else "not ok", n, "-", f"{case}: {what}")
            if not good:
                print("#", why, file=sys.stderr)
    print(f"1..{n}")
    sys.exit(failed > 0 or n == 0)


if __name__ == "__main__":
    main()
