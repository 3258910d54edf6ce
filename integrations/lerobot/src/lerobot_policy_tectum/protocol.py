"""protocol.py - a connection to `tectum serve`: openpi's WebSocket protocol, and what goes wrong on it.

Needs NumPy, msgpack and websockets, neither LeRobot nor torch. One request at a time: the caller's
thread waits for the reply.
"""

import time

import msgpack
import numpy as np
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import connect

KINDS = "biuf"  # of arrays that may come or go; objects would be code from elsewhere
LARGEST_REPLY = 64 << 20
MARK = b"__ndarray__"


class ServerUnreachable(ConnectionError):
    """No server answered within the time that was given."""


class RequestRefused(RuntimeError):
    """The server said why it does not answer this request; asking again would not help."""


class ReplyLost(ConnectionError):
    """The connection ended, or the time passed, before the reply was there."""


def _encode(x):
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.kind not in KINDS:
            raise TypeError(f"an array of {x.dtype} cannot be sent: numbers only")
        x = np.asarray(x)
        little = np.ascontiguousarray(x, x.dtype.newbyteorder("<")).reshape(x.shape)
        return {MARK: True, b"data": little.tobytes(), b"dtype": little.dtype.str,
                b"shape": list(little.shape)}
    raise TypeError(f"a {type(x).__name__} cannot be sent")


def _text(x):
    return x.decode() if isinstance(x, bytes) else x


def _decode(m):
    if not m.get(MARK, m.get("__ndarray__")):
        return m
    m = {_text(key): value for key, value in m.items()}
    dtype = np.dtype(_text(m["dtype"]))
    if dtype.kind not in KINDS:
        raise ValueError(f"the reply has an array of {dtype}: numbers only")
    return np.frombuffer(m["data"], dtype).reshape(m["shape"])


def pack(message):
    return msgpack.packb(message, default=_encode)


def unpack(data):
    return msgpack.unpackb(data, object_hook=_decode, strict_map_key=False)


class Client:
    """A server at `url`. `infer` connects when there is no connection; a lost one is made anew.

    connect_s: how long a connection is tried, at start and after the server went away.
    reply_s: how long a reply is waited for. key: what `tectum serve --key` asks for, or None.
    """

    def __init__(self, url, key=None, connect_s=10.0, reply_s=10.0):
        self.url, self.key, self.connect_s, self.reply_s = url, key, connect_s, reply_s
        self.metadata, self.connections, self._socket = {}, 0, None

    def connect(self):
        """Waits for the server for at most connect_s; gives its metadata."""
        if self._socket is not None:
            return self.metadata
        until, pause = time.monotonic() + self.connect_s, 0.05
        while True:
            left = max(until - time.monotonic(), 0.1)
            try:
                self._open(left)
                return self.metadata
            except (OSError, InvalidHandshake, ConnectionClosed, TimeoutError) as e:
                self.close()
                status = e.response.status_code if isinstance(e, InvalidStatus) else None
                if status in (401, 403):  # the server is there and will not change its mind
                    raise RequestRefused(f"{self.url} answered {status}: the key is "
                                         f"{'wrong' if self.key else 'missing'}") from e
                if time.monotonic() + pause >= until:
                    raise ServerUnreachable(f"{self.url}: no server within {self.connect_s:g} s "
                                            f"({status or e or type(e).__name__}); start `tectum serve`, or "
                                            "raise connect_timeout_s") from e
                time.sleep(pause)
                pause = min(pause * 2, 1.0)

    def _open(self, left):
        headers = {"Authorization": f"Api-Key {self.key}"} if self.key else None
        # A proxy of the environment is for web pages; robots and servers are on one network.
        self._socket = connect(self.url, additional_headers=headers, compression=None, proxy=None,
                               max_size=LARGEST_REPLY, open_timeout=left, close_timeout=1)
        first = self._socket.recv(timeout=left)
        try:
            metadata = unpack(first)
            if not isinstance(metadata, dict):
                raise ValueError("no map")
        except (TypeError, ValueError) as e:
            raise RequestRefused(f"{self.url} is no openpi server: its first message is no "
                                 f"metadata ({e})") from e
        self.metadata, self.connections = metadata, self.connections + 1

    def close(self):
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()

    def infer(self, observation):
        """The reply to an observation. Raises RequestRefused, ReplyLost or ServerUnreachable.

        A request whose sending or reply fails is never sent again: its observation is old by then.
        """
        data = pack(observation)
        self.connect()
        try:
            self._socket.send(data)
            reply = self._socket.recv(timeout=self.reply_s)
        except ConnectionClosed as e:
            self.close()
            raise ReplyLost(f"{self.url}: the connection ended before the reply ({e})") from e
        except TimeoutError as e:
            # The late reply must not be taken for the next request's.
            self.close()
            raise ReplyLost(f"{self.url}: no reply within {self.reply_s:g} s") from e
        except OSError as e:
            self.close()
            raise ReplyLost(f"{self.url}: {e}") from e
        if isinstance(reply, str):  # openpi's way to say what is wrong; the connection ends
            self.close()
            raise RequestRefused(f"{self.url}: {reply.strip()}")
        reply = unpack(reply)
        if not isinstance(reply, dict):
            self.close()
            raise RequestRefused(f"{self.url}: the reply is no map")
        return reply
