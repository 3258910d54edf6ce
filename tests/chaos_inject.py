"""chaos_inject.py - what chaos.py does to a running program, and what five places then say of each miss.

Everything is done from the outside: the process is stopped, one of its lanes alone is given other
work, inputs are written late, a policy burns its budget.
"""

import ctypes
import json
import os
import signal
import struct
import subprocess
import time
import urllib.request
import zlib

from mcap_file import Recording

libc = ctypes.CDLL(None, use_errno=True)


# A library for LD_PRELOAD, as a slow disk is: who opens a picture $SLOW_PICTURE waits for $SLOW_MS, and who reads
# $SLOW_STORE waits for as long as $SLOW_STORE.slow is there. The thread that gets SIGRTMIN + 1 computes for $SLOW_NODE_MS.
SLOW_THINGS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static long node_ms;
static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000 * t.tv_sec + t.tv_nsec / 1000000;
}
static void compute(int signal)
{
    long until = now_ms() + node_ms;
    while (now_ms() < until)
        ;
}
__attribute__((constructor)) static void begin(void)
{
    struct sigaction act = {.sa_handler = compute, .sa_flags = SA_RESTART};
    const char *ms = getenv("SLOW_NODE_MS");
    node_ms = ms ? atol(ms) : 0;
    if (ms)
        sigaction(SIGRTMIN + 1, &act, NULL);
}
static void opened(const char *path)
{
    const char *slow = getenv("SLOW_PICTURE"), *name = strrchr(path, '/');
    if (slow && name && strcmp(name + 1, slow) == 0)
        usleep(1000U * (unsigned)atoi(getenv("SLOW_MS")));
}
static void reads(int fd)
{
    const char *store = getenv("SLOW_STORE");
    char link[64], path[4096], flag[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = store ? readlink(link, path, sizeof path - 1) : -1;
    if (n < 0)
        return;
    path[n] = 0;
    snprintf(flag, sizeof flag, "%s.slow", store);
    while (strcmp(path, store) == 0 && access(flag, F_OK) == 0)
        usleep(1000);
}
#define OPEN(name)                                              \
    int name(const char *path, int flags, ...)                  \
    {                                                           \
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #name); \
        va_list more;                                           \
        va_start(more, flags);                                  \
        int mode = va_arg(more, int);                           \
        va_end(more);                                           \
        opened(path);                                           \
        return real(path, flags, mode);                         \
    }
#define READ(name)                                              \
    ssize_t name(int fd, void *to, size_t n, off_t at)          \
    {                                                           \
        ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, #name); \
        reads(fd);                                              \
        return real(fd, to, n, at);                             \
    }
OPEN(open) OPEN(open64) READ(pread) READ(pread64)
"""


def slow_things(work):
    """The variable that makes a program's files and nodes slow; {} where there is no compiler."""
    path = os.path.join(work, "slow.so")
    try:
        p = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", path, "-ldl"], input=SLOW_THINGS,
                           text=True, capture_output=True)
    except FileNotFoundError:
        return {}
    return {"LD_PRELOAD": path} if p.returncode == 0 else {}


def picture(path, side=64):
    """A grey picture, as PNG."""
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x80" * (3 * side)) * side
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
                part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def pause(pid, seconds):
    """The whole program stands still."""
    os.kill(pid, signal.SIGSTOP)
    began = now_us()
    time.sleep(seconds)
    ended = now_us()
    os.kill(pid, signal.SIGCONT)
    return began, ended


def lane_of(pid):
    """The thread of the second lane: of the two that compute beside the first thread, the one that was there first."""
    spent = []
    for task in os.listdir("/proc/%d/task" % pid):
        if int(task) == pid:
            continue
        fields = open("/proc/%d/task/%s/stat" % (pid, task)).read().rsplit(")", 1)[1].split()
        spent.append((int(fields[11]) + int(fields[12]), int(task)))
    return min(task for _, task in sorted(spent)[-2:])


def ran_s(pid):
    """Seconds of processors that a program's threads have had."""
    spent = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
            spent += int(f.read().split()[0])
    return spent / 1e9


def slow_node(pid, seconds, meanwhile=lambda: None):
    """One lane has other work for so long, and the others wait for it: (cause, from, to). The program takes it for a
    slow launch where it had a fifth of a processor meanwhile; where the machine left it much less, it stood still as a
    whole, and between the two the cause is None: nothing is known. None in all where it cannot be done here. The program
    runs with `slow_things`, and $SLOW_NODE_MS is as long."""
    task = lane_of(pid)
    began, had = now_us(), ran_s(pid)
    if libc.tgkill(pid, task, signal.SIGRTMIN + 1) != 0:
        return None
    meanwhile()
    time.sleep(seconds)
    ended, share = now_us(), (ran_s(pid) - had) / seconds
    print("# a slow node: the program had %.0f %% of a processor" % (100 * share), flush=True)
    return "gpu" if share > 0.35 else "host" if share < 0.1 else None, began, ended


def page_of(port):
    """The frames that the page of a running robot shows."""
    with urllib.request.urlopen("http://127.0.0.1:%d/data" % port, timeout=20) as r:
        return json.loads(r.read())["frames"]


def port_of(line):
    return int(line.split("127.0.0.1:")[1].split("/")[0])


class Told:
    """What is said of the frames of a recording, by where: {place: {frame: cause}}; and the frames themselves."""

    def __init__(self, program, path, work):
        def tectum(*arguments):
            p = subprocess.run([program, *arguments], capture_output=True, text=True)
            assert p.returncode == 0, (arguments, p.returncode, p.stderr[-500:])
            return p.stdout

        self.frames = Recording(path).of("/tectum/frames")
        self.explained = json.loads(tectum("explain", path, "--format", "json"))
        tectum("replay", path, "--html", work + "/page.html")
        text = open(work + "/page.html").read()
        page = json.loads(text.split('id="data">')[1].split("</script>")[0])["frames"]
        self.trace = json.loads(tectum("trace", path, "--chrome"))["traceEvents"]
        slices = [e["args"] for e in self.trace if e["ph"] == "X" and e["name"].startswith("frame ")]
        self.misses = {m["frame"]: m for m in self.explained["misses"]}
        self.page = {f["frame"]: f for f in page}
        self.causes = {
            "recording": {f["frame"]: f["cause"] for f in self.frames if f["missed"]},
            "explain": {m["frame"]: m["cause"] for m in self.explained["misses"]},
            "page": {f["frame"]: f["cause"] for f in page if f["missed"]},
            "trace": {a["frame"]: a["cause"] for a in slices if a["missed"]}}
        self.words = {
            "explain": {m["frame"]: m["words"] for m in self.explained["misses"]},
            "page": {f["frame"]: f["words"] for f in page if f["missed"]},
            "trace": {a["frame"]: a["words"] for a in slices if a["missed"]}}

    def differ(self):
        """Places that do not say what `explain` does."""
        bad = [(place, causes, self.causes["explain"]) for place, causes in self.causes.items()
               if causes != self.causes["explain"]]
        return bad + [(place, words, self.words["explain"]) for place, words in self.words.items()
                      if words != self.words["explain"]]

    def counts(self):
        out = {}
        for cause in self.causes["explain"].values():
            out[cause] = out.get(cause, 0) + 1
        return out

    def of(self, began_us, ended_us):
        """Missed frames whose overrun the time between explains by itself."""
        for f in self.frames:
            over = min(f["end_us"], ended_us) - max(f["tick_us"], began_us)
            if f["missed"] and over >= f["overrun_us"]:
                yield f

    def at(self, turn, every):
        """Missed frames of a tick of each round."""
        return [f for f in self.frames if f["missed"] and f["frame"] % every == turn]
