"""serve_client.py - a WebSocket client and msgpack-numpy of its own, of the standard library alone.

What a test of the server needs: whole messages, single frames, and frames that break the rules.
"""

import base64
import os
import socket
import struct


def pack(x):
    """msgpack of None, bool, int, float, str, bytes, list, dict, Array."""
    if x is None:
        return b"\xc0"
    if x is True or x is False:
        return b"\xc3" if x else b"\xc2"
    if isinstance(x, int):
        return b"\xcf" + struct.pack(">Q", x) if x >= 0 else b"\xd3" + struct.pack(">q", x)
    if isinstance(x, float):
        return b"\xcb" + struct.pack(">d", x)
    if isinstance(x, str):
        return b"\xdb" + struct.pack(">I", len(x.encode())) + x.encode()
    if isinstance(x, bytes):
        return b"\xc6" + struct.pack(">I", len(x)) + x
    if isinstance(x, list):
        return b"\xdd" + struct.pack(">I", len(x)) + b"".join(pack(v) for v in x)
    if isinstance(x, Array):
        x = {b"__ndarray__": True, b"data": x.data, b"dtype": x.dtype, b"shape": list(x.shape)}
    return b"\xdf" + struct.pack(">I", len(x)) + b"".join(pack(k) + pack(v) for k, v in x.items())


class Array:
    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, tuple(shape), bytes(data)

    @staticmethod
    def floats(values, dtype="<f8"):
        code = {"<f8": "d", "<f4": "f"}[dtype]
        return Array(dtype, [len(values)], struct.pack("<%d%s" % (len(values), code), *values))


def unpack(data):
    value, at = _unpack(data, 0)
    assert at == len(data), "bytes follow the value"
    return value


def _unpack(d, at):
    head = d[at]
    at += 1
    if head < 0x80:
        return head, at
    if head >= 0xE0:
        return head - 256, at
    if head in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[head], at
    numbers = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
               0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    if head in numbers:
        n = struct.calcsize(numbers[head])
        return struct.unpack(numbers[head], d[at:at + n])[0], at + n
    if 0xA0 <= head < 0xC0:
        kind, n = "str", head & 31
    elif 0x80 <= head < 0x90:
        kind, n = "map", head & 15
    elif 0x90 <= head < 0xA0:
        kind, n = "array", head & 15
    else:
        kind, size = {0xC4: ("bin", 1), 0xC5: ("bin", 2), 0xC6: ("bin", 4),
                      0xD9: ("str", 1), 0xDA: ("str", 2), 0xDB: ("str", 4),
                      0xDC: ("array", 2), 0xDD: ("array", 4),
                      0xDE: ("map", 2), 0xDF: ("map", 4)}[head]
        n = int.from_bytes(d[at:at + size], "big")
        at += size
    if kind in ("bin", "str"):
        raw = d[at:at + n]
        return (raw if kind == "bin" else raw.decode()), at + n
    items = []
    for _ in range(n * (2 if kind == "map" else 1)):
        item, at = _unpack(d, at)
        items.append(item)
    if kind == "array":
        return items, at
    out = dict(zip(items[::2], items[1::2]))
    if b"__ndarray__" in out:
        out = Array(out[b"dtype"], out[b"shape"], out[b"data"])
    return out, at


class Refused(Exception):
    """The handshake was answered with another status."""


class Socket:
    """One connection to `to`; read() gives (opcode, bytes), control frames too. tls: an ssl.SSLContext."""

    def __init__(self, port, path="/", headers="", timeout=20, tls=None, host="x", to="127.0.0.1"):
        self.s = socket.create_connection((to, port), timeout=timeout)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.s = tls.wrap_socket(self.s, server_hostname="127.0.0.1")
        self.buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n%s\r\n"
                        % (path, host, key, headers)).encode())
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        self.head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        if b" 101 " not in self.head.split(b"\r\n")[0]:
            raise Refused(self.head.decode())

    def _more(self):
        got = self.s.recv(1 << 16)
        if not got:
            raise EOFError("the server closed the socket")
        self.buffer += got

    def _take(self, n):
        while len(self.buffer) < n:
            self._more()
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def frame(self, opcode, data, final=True, masked=True, claim=None):
        """Send one frame; `claim`: the length that its header tells."""
        self.s.sendall(self.bytes_of(opcode, data, final, masked, claim))

    def burst(self, messages):
        """Send binary messages so that they arrive together."""
        self.s.sendall(b"".join(self.bytes_of(2, m) for m in messages))

    @staticmethod
    def bytes_of(opcode, data, final=True, masked=True, claim=None):
        n = len(data) if claim is None else claim
        bit = 0x80 if masked else 0
        head = bytes([(0x80 if final else 0) | opcode])
        if n < 126:
            head += bytes([bit | n])
        elif n < 65536:
            head += bytes([bit | 126]) + struct.pack(">H", n)
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", n)
        if masked:
            key = os.urandom(4)
            mask = (key * (len(data) // 4 + 1))[:len(data)]
            data = (int.from_bytes(data, "big") ^ int.from_bytes(mask, "big")).to_bytes(
                len(data), "big") if data else b""
            head += key
        return head + data

    def read(self):
        first, second = self._take(2)
        n = second & 127
        if n == 126:
            n = struct.unpack(">H", self._take(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self._take(8))[0]
        return first & 15, self._take(n)

    def message(self):
        """The next text or binary message; pings are answered on the way."""
        while True:
            opcode, data = self.read()
            if opcode == 9:
                self.frame(10, data)
            elif opcode in (1, 2, 8):
                return opcode, data

    def send(self, value):
        self.frame(2, pack(value))

    def reply(self):
        opcode, data = self.message()
        assert opcode == 2, (opcode, data)
        return unpack(data)

    def infer(self, value):
        self.send(value)
        return self.reply()

    def failure(self):
        """The sentence and the close code that end a connection."""
        opcode, text = self.message()
        if opcode == 1:
            opcode, data = self.message()
        else:
            text, data = b"", text
        assert opcode == 8, opcode
        try:
            self.frame(8, data[:2])
            self.s.shutdown(socket.SHUT_WR)
            while self.s.recv(1 << 16):
                pass
        except OSError:
            pass
        return text.decode(), struct.unpack(">H", data[:2])[0], data[2:].decode()

    def close(self):
        self.s.close()
