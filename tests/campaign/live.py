"""live.py - attacks a running `tectum serve` for a while.  python3 tests/campaign/live.py PROGRAM SECONDS [SEED]

A robot asks all the time and knows what the answer must be; beside it strangers send mutated HTTP,
WebSocket frames, msgpack messages and control orders, one way at a time. The server must be there at
the end, every answer of the robot right, and none later than FROZEN_S. Prints one line of JSON for
each way: packets, the robot's answers alone and under attack, and their times.
"""

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from serve_client import Array, Refused, Socket, pack  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FROZEN_S, SIDE, TURN_S = 20, 64, 4.0
picture = Array("|u1", [SIDE, SIDE, 3], bytes(SIDE * SIDE * 3))
OBSERVATION = {"observation/image": picture, "observation/wrist_image": picture,
               "observation/state": Array.floats([0.0, 0.6, 0.2, 1.0]), "prompt": "press the button",
               "tectum": {"seed": 7}}
SMALL = {"observation/state": Array.floats([0.0, 0.6, 0.2, 1.0]), "prompt": "press the button",
         "tectum": {"seed": 7, "tasks": ["action", "text"], "ask": {"node": "talk", "max_tokens": 3},
                    "deadline_ms": 40.0, "obs_ts": 12345, "session_id": "x", "reset": False}}
UPGRADE = (b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
HTTP = [UPGRADE, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
        b"GET /readyz HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        UPGRADE[:-2] + b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nAuthorization: Bearer x\r\nOrigin: null\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
ORDERS = [{"cmd": "status"}, {"cmd": "set", "params": {"k": 3}}, {"cmd": "load", "policy": "oxygen"},
          {"cmd": "reset"}, {"cmd": "drop"}, {"cmd": "load", "policy": "../../etc/passwd"},
          {"cmd": "dump", "path": "here.json"}, {"cmd": "nothing"}, {"cmd": ["status"] * 50}]


def frame(data, opcode=2, final=True):
    """A masked WebSocket frame; the mask is zero, so that mutations reach the payload."""
    n = len(data)
    head = bytes([(128 if final else 0) | opcode])
    head += bytes([128 | n]) if n < 126 else bytes([254]) + struct.pack(">H", n) if n < 65536 else \
        bytes([255]) + struct.pack(">Q", n)
    return head + bytes(4) + data


def mutate(dice, data):
    data = bytearray(data)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 4, 16))):
        if not data:
            break
        at, how = dice.randrange(len(data)), dice.randrange(7)
        if how == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif how == 1:
            data[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, 13, 10, 0xC1, 0xDD, 0xDF))
        elif how == 2:
            del data[at:at + dice.randrange(1, 40)]
        elif how == 3:
            data[at:at] = data[at:at + dice.randrange(1, 60)] * dice.choice((1, 1, 2, 20))
        elif how == 4:
            data[at:at] = dice.randbytes(dice.randrange(1, 9))
        elif how == 5:
            data[at:at + 8] = struct.pack(">Q", dice.choice((0, 2**31, 2**32 - 1, 2**63, 2**64 - 1)))
        else:
            del data[at:]
    return bytes(data)


class Way:
    """One way to attack, on a thread of its own: step() sends some packets and returns how many."""

    def __init__(self, server, seed):
        self.server, self.dice, self.s = server, random.Random(seed), None

    def open(self):
        self.s = socket.create_connection(("127.0.0.1", self.server.port), timeout=2)

    def send(self, data):
        """In one piece or in a few; then what came back is thrown away."""
        cut = self.dice.randrange(len(data) + 1) if self.dice.random() < 0.3 else len(data)
        for piece in (data[:cut], data[cut:]):
            if piece:
                self.s.sendall(piece)
        self.s.setblocking(False)
        try:
            if self.s.recv(1 << 16) == b"":
                raise ConnectionResetError
        except BlockingIOError:
            pass
        finally:
            self.s.settimeout(2)

    def close(self):
        if self.s:
            self.s.close()
        self.s = None


class Before(Way):
    """Packets before the handshake, a connection for every few."""

    def step(self):
        self.open()
        n = 0
        try:
            for _ in range(self.dice.randrange(1, 6)):
                self.send(mutate(self.dice, self.dice.choice(HTTP)))
                n += 1
        finally:
            self.close()
        return n


class Behind(Way):
    """WebSocket frames behind a good handshake."""

    def packet(self):
        return mutate(self.dice, frame(self.dice.randbytes(self.dice.randrange(300)),
                                       self.dice.choice((0, 1, 2, 2, 8, 9, 10, 3, 15)),
                                       self.dice.random() < 0.7))

    def step(self):
        self.open()
        n = 0
        try:
            self.s.sendall(UPGRADE)
            for _ in range(self.dice.randrange(1, 30)):
                self.send(self.packet())
                n += 1
        finally:
            self.close()
        return n


class Messages(Behind):
    """Whole frames that hold mutated messages of msgpack."""

    def packet(self):
        return frame(mutate(self.dice, pack(SMALL if self.dice.random() < 0.95 else OBSERVATION)))


class Orders(Way):
    """Mutated orders on the control socket."""

    def step(self):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(2)
        n = 0
        try:
            self.s.connect(self.server.control)
            for _ in range(self.dice.randrange(1, 20)):
                order = json.dumps(self.dice.choice(ORDERS)).encode()
                self.send(mutate(self.dice, order) + b"\n")
                n += 1
        finally:
            self.close()
        return n


class Waiting(Way):
    """Sockets that are opened and never say a whole request."""

    def step(self):
        some = []
        try:
            for _ in range(30):
                self.open()
                self.s.sendall(UPGRADE[:self.dice.randrange(len(UPGRADE))])
                some.append(self.s)
            time.sleep(0.05)
        finally:
            for s in some:
                s.close()
        return len(some)


WAYS = [Before, Behind, Messages, Orders, Waiting]


class Server:
    def __init__(self, program):
        self.box = tempfile.TemporaryDirectory()
        self.control = os.path.join(self.box.name, "control")
        self.log = open(os.path.join(self.box.name, "log"), "w+")
        pipeline = os.path.join(ROOT, "pipelines/demo_metaworld.lua")
        weights = os.path.join(ROOT, "pipelines/checkpoints/metaworld")
        self.p = subprocess.Popen(
            [program, "serve", pipeline, "--weights", weights, "--port", "0", "--threads", "1",
             "--late-ok", "--control", self.control], cwd=self.box.name, stdout=subprocess.PIPE,
            stderr=self.log, text=True)
        line = self.p.stdout.readline()
        assert " on ws://" in line, line
        self.port = int(line.split("ws://")[1].split()[0].split(":")[-1])

    def said(self):
        self.log.flush()
        return open(self.log.name).read()


class Robot(threading.Thread):
    """Asks every 25 ms; each answer must be the first one's."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.wrong, self.times, self.ended = server, None, [], False
        self.s = Socket(server.port, timeout=FROZEN_S)
        self.s.reply()
        self.right = self.s.infer(OBSERVATION)["actions"].data

    def run(self):
        try:
            while not self.ended:
                began = time.monotonic()
                if self.s.infer(OBSERVATION)["actions"].data != self.right:
                    self.wrong = "another answer"
                    return
                self.times.append(time.monotonic() - began)
                time.sleep(0.025)
        except Exception as e:  # noqa: BLE001
            self.wrong = self.wrong or repr(e)

    def take(self):
        times, self.times = self.times, []
        return times


def at(values, q):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(q * len(values)))] * 1e3, 3) if values else None


def attack(server, robot, way, seconds, seed):
    """Alone and under attack in turns, so that both see the same machine."""
    packets, alone, under = 0, [], []
    strangers = way(server, seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end and not robot.wrong and server.p.poll() is None:
        robot.take()
        time.sleep(TURN_S / 4)
        alone += robot.take()
        turn = time.monotonic() + TURN_S
        while time.monotonic() < turn and server.p.poll() is None:
            try:
                packets += strangers.step()
            except (OSError, Refused):
                strangers.close()
                packets += 1
        under += robot.take()
    return {"way": way.__name__.lower(), "what": way.__doc__, "packets": packets,
            "alone": {"n": len(alone), "p50_ms": at(alone, 0.5), "p99_ms": at(alone, 0.99)},
            "attacked": {"n": len(under), "p50_ms": at(under, 0.5), "p99_ms": at(under, 0.99),
                         "max_ms": at(under, 1)}}


def main():
    program, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    server = Server(program)
    robot = Robot(server)
    robot.start()
    for i, way in enumerate(WAYS):
        print(json.dumps(attack(server, robot, way, seconds / len(WAYS), seed * 100 + i)), flush=True)
    robot.ended = True
    robot.join(FROZEN_S + 5)
    died = server.p.poll()
    if died is None:
        server.p.send_signal(signal.SIGTERM)
        server.p.wait(timeout=60)
    bad = robot.wrong or (died is not None and "the server ended with %d" % died) or \
        (server.p.returncode != 0 and "exit %d" % server.p.returncode)
    if bad or "Sanitizer" in server.said():
        print("live.py: seed %d: %s\n%s" % (seed, bad, server.said()[-4000:]), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
