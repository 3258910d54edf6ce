"""two_machines.py - a network between two machines on one: packets are held back, lost, and overtake each other.

Each machine is a network namespace with a TUN device. A process between the two reads packets of one device and writes them
to the other, each after its own delay; what TCP makes of that - acknowledgements, packets sent again, timers - is the
kernel's own at either end. It does what `tc netem` does, where the kernel has no netem; the order of packets is that of
their delays, as there.
"""

import ctypes
import fcntl
import heapq
import itertools
import mmap
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time

CLIENT, SERVER = "10.77.0.1", "10.77.0.2"
CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
IFF_UP, IFF_TUN, IFF_NO_PI, TUNSETIFF = 1, 1, 0x1000, 0x400454CA
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFDSTADDR = 0x8913, 0x8914, 0x8916, 0x8918
libc = ctypes.CDLL(None, use_errno=True)


def apart(why_not, tun=True):
    """Run this script again in a network namespace of its own, where it may make more of them; there return.

    Ends with 0 where that is not permitted, or, with `tun`, there are no TUN devices, after why_not(sentence).
    """
    if os.environ.pop("TWO_MACHINES", None):
        return
    own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*own, "true"], capture_output=True).returncode:
        why_not("no network namespace may be made here")
    elif tun and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        why_not("no /dev/net/tun here")
    else:
        sys.exit(subprocess.run([*own, sys.executable, *sys.argv], env={**os.environ, "TWO_MACHINES": "1"}).returncode)
    sys.exit(0)


def up(name, address=None, peer=None):
    """Set an interface of this namespace up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for what, value in ((SIOCSIFADDR, address), (SIOCSIFDSTADDR, peer)):
            if value:
                said = struct.pack("16sH2x4s8x", name.encode(), socket.AF_INET, socket.inet_aton(value))
                fcntl.ioctl(s, what, said)
        flags = struct.unpack("16xh", fcntl.ioctl(s, SIOCGIFFLAGS, struct.pack("16sh22x", name.encode(), 0))[:18])[0]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh22x", name.encode(), flags | IFF_UP))


def _machine(address, peer):
    """A TUN device of this namespace, from `address` to `peer`."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sh22x", b"robot", IFF_TUN | IFF_NO_PI))
    up("lo")
    up("robot", address, peer)
    return fd


def sent_again():
    """TCP's packets that this namespace has sent a second time."""
    names, values = [line.split() for line in open("/proc/thread-self/net/snmp") if line.startswith("Tcp:")]
    return int(values[names.index("RetransSegs")])


class Link:
    """Two machines, CLIENT's and SERVER's; this process is on the first. Only within `apart`."""

    SHAPE = "dddd"  # seconds of delay, how much they vary, share of packets that is lost, all of them (1) or not

    def __init__(self):
        a = _machine(CLIENT, SERVER)
        self.here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        b = _machine(SERVER, CLIENT)
        self.there = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._go(self.here)
        self.congestion = self._loss_based()
        self.shared = mmap.mmap(-1, 4096)
        self.shape()
        self.pid = os.fork()
        if self.pid == 0:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it ends with who began it
            self._carry({a: b, b: a})
        for fd in (a, b):
            os.close(fd)

    @staticmethod
    def _go(namespace):
        if libc.setns(namespace, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def there_is(self, start):
        """What `start` begins, a process, is the other machine's."""
        self._go(self.there)
        try:
            return start()
        finally:
            self._go(self.here)

    def _loss_based(self):
        """A usual robot's congestion control, whatever this machine's is: Linux's own choice, or where a namespace may not
        have that its elder relative, which does the same on ways as short as these."""
        for name in ("cubic", "reno"):
            try:
                self.tcp("congestion_control", name)
                return name
            except OSError:
                pass
        return "as on this machine"

    def tcp(self, name, value):
        """A setting of both machines' TCP, as `sysctl net.ipv4.tcp_NAME=VALUE` makes it."""
        for namespace in (self.there, self.here):
            self._go(namespace)
            with open("/proc/sys/net/ipv4/tcp_" + name, "w") as file:
                file.write(value)

    def shape(self, delay_s=0.0, jitter_s=0.0, loss=0.0, gone=False):
        """What happens to packets that come from now on, each way; those on their way arrive."""
        struct.pack_into(self.SHAPE, self.shared, 0, delay_s, jitter_s, loss, float(gone))

    def _carry(self, other):
        chance, number, held = random.Random(1), itertools.count(), []
        try:
            while True:
                left = None if not held else max(0.0, held[0][0] - time.monotonic())
                for fd in select.select(list(other), [], [], left)[0]:
                    packet = os.read(fd, 65536)
                    delay, jitter, loss, gone = struct.unpack_from(self.SHAPE, self.shared)
                    if gone or chance.random() < loss:
                        continue
                    due = time.monotonic() + delay + chance.uniform(-jitter, jitter)
                    heapq.heappush(held, (due, next(number), other[fd], packet))
                while held and held[0][0] <= time.monotonic():
                    _, _, to, packet = heapq.heappop(held)
                    try:
                        os.write(to, packet)
                    except OSError:  # the device is full, or gone: a packet more that is lost
                        pass
        finally:
            os._exit(1)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
