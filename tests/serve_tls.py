"""serve_tls.py - a server with a certificate, TAP.  python3 tests/serve_tls.py PROGRAM [--times]

Clients that trust its authority get the bytes that a plain server gives; files that do not fit are refused before a
model is loaded; and who speaks no TLS, or does not go on with it, costs robots neither time nor a place.
"""

import asyncio
import json
import os
import random
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from serve_hostile import STALL  # noqa: E402
from serve_client import Array, Refused, Socket, pack, unpack  # noqa: E402
from serve_harness import BOX, PROGRAM, SLOW, check, key_file, main, test, times  # noqa: E402

serve_harness.tests.clear()  # those of serve_hostile are its own
DEMO, MANY = "pipelines/demo_metaworld.lua", "pipelines/graphs/g24_many_robots.lua"
# Sanitizers take their time, which a small model shortens: this one takes smaller pictures, too.
SMALL, SIDE = (["--random-weights", "1", "--size", "tiny"], 28) if SLOW > 1 else ([], 64)
BLACK = Array("|u1", [SIDE, SIDE, 3], bytes(SIDE * SIDE * 3))
OBSERVATION = {**serve_harness.OBSERVATION, "observation/image": BLACK, "observation/wrist_image": BLACK}
KEY = "a-key-of-24-characters.."


def box(name):
    return os.path.join(BOX, name)


def openssl(*words, **how):
    return subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=BOX, **how)


def write(name, data, mode=0o600):
    with open(box(name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    os.chmod(box(name), mode)
    return box(name)


def content(name):
    with open(box(name), "rb") as f:
        return f.read()


def make_key(name, *kind):
    openssl("genpkey", *(kind or ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")), "-out", name)
    os.chmod(box(name), 0o600)


def make_cert(name, key, authority, days="2"):
    """A certificate of 127.0.0.1 for a key, signed by (certificate, key) of an authority."""
    write("names", "subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl("req", "-new", "-key", key, "-subj", "/CN=robot", "-out", "request")
    openssl("x509", "-req", "-in", "request", "-CA", authority[0], "-CAkey", authority[1], "-CAcreateserial",
            "-days", days, "-extfile", "names", "-out", name)


def make_authority(name, key, above=None):
    words = ["-x509", "-days", "2"] if not above else []
    openssl("req", "-new", *words, "-key", key, "-subj", "/CN=" + name, "-out", name)
    if above:
        write("extra", "basicConstraints=critical,CA:TRUE\n")
        openssl("x509", "-req", "-in", name, "-CA", above[0], "-CAkey", above[1], "-CAcreateserial", "-days", "2",
                "-extfile", "extra", "-out", name)


def prepare():
    for key in ("root.key", "own.key", "other.key", "middle.key"):
        make_key(key)
    make_authority("root.pem", "root.key")
    make_cert("own.pem", "own.key", ("root.pem", "root.key"))


prepare()
TRUSTS = ssl.create_default_context(cafile=box("root.pem"))
GIVEN = ("--tls-cert", box("own.pem"), "--tls-key", box("own.key"))


class Server(serve_harness.Server):
    tls = TRUSTS

    def __init__(self, *options, given=GIVEN, pipeline=DEMO, **how):
        super().__init__(pipeline, "--late-ok", *SMALL, *given, *options, **how)
        found = re.search(r"https://127\.0\.0\.1:(\d+)/act", self.line)
        self.act_port = found and int(found.group(1))

    def works(self, headers=""):
        s = self.connect(headers)
        check(s.infer(OBSERVATION)["actions"].shape == (16, 4))
        s.close()


class Plain(serve_harness.Server):
    def __init__(self, *options):
        super().__init__(DEMO, "--late-ok", *SMALL, *options)


def curl(*words):
    return subprocess.run(["curl", "-sS", "--max-time", str(int(20 * SLOW)), "--cacert", box("root.pem"), *words],
                          capture_output=True)


def observation(i, beside=0):
    """beside: bytes that the robot does not have, and the server only reads."""
    picture = Array("|u1", [SIDE, SIDE, 3], bytes(x * (i + 3) % 256 for x in range(SIDE * SIDE * 3)))
    more = {"beside": Array("|u1", [beside], bytes(beside))} if beside else {}
    return {**OBSERVATION, "observation/image": picture, "observation/state": Array.floats([0.01 * i, 0.6, 0.2, 1.0]), **more}


# What two servers are asked: small observations, and one of some megabytes.
ASKED = [observation(i) for i in range(4)] + [observation(4, beside=5 << 20)]


@test
def bytes_are_those_of_a_plain_server():
    plain, server = Plain(), Server()
    expected = [s.infer(o)["actions"].data for s in [plain.connect()] for o in ASKED]
    got = [s.infer(o)["actions"].data for s in [server.connect()] for o in ASKED]
    check(got == expected and len(set(got)) == len(got))
    check(server.connect().s.version() == "TLSv1.3")
    code, _, err = server.end()
    check(code == 0 and "5 requests, 0 errors" in err, err)


@test
def the_client_websockets_is_served():
    try:
        import websockets
    except ImportError:
        return "websockets is not there (sh tools/setup.sh --test)"
    plain, server = Plain(), Server("--key", key_file(KEY))

    async def ask():
        uri = "wss://127.0.0.1:%d" % server.port
        async with websockets.connect(uri, ssl=TRUSTS, max_size=None, compression=None,
                                      extra_headers={"Authorization": "Api-Key " + KEY}) as s:
            check(list(unpack(await s.recv())) == ["tectum"])
            got = []
            for o in ASKED:
                await s.send(pack(o))
                got.append(unpack(await s.recv())["actions"].data)
            await (await s.ping())
            return got

    got = asyncio.run(asyncio.wait_for(ask(), 60 * SLOW))
    check(got == [s.infer(o)["actions"].data for s in [plain.connect()] for o in ASKED])

    async def is_refused(how, **given):
        try:
            async with websockets.connect(how % server.port, **given):
                check(False, how)
        except (ssl.SSLError, OSError, websockets.exceptions.WebSocketException) as e:
            return str(e)

    check("verify" in asyncio.run(is_refused("wss://127.0.0.1:%d", ssl=ssl.create_default_context())))
    check("400" in asyncio.run(is_refused("ws://127.0.0.1:%d")))
    check("401" in asyncio.run(is_refused("wss://127.0.0.1:%d", ssl=TRUSTS)))
    check(server.end()[0] == 0)


@test
def pages_and_act_are_encrypted_too():
    server = Server("--act-port", "0", "--key", key_file(KEY))
    at = "https://127.0.0.1:%d" % server.port
    check(curl(at + "/healthz").stdout == b"OK\n")
    check(curl(at + "/readyz").stdout == b"OK\n")
    check(b"tectum_requests_total" in curl(at + "/metrics", "-H", "Authorization: Api-Key " + KEY).stdout)
    check(b"asks for a key" in curl(at + "/metrics").stdout)
    picture = [[[7, 7, 7]] * SIDE] * SIDE
    body = json.dumps({"image": picture, "wrist_image": picture, "state": [0.0, 0.6, 0.2, 1.0],
                       "instruction": "press the button"})
    act = "https://127.0.0.1:%d/act" % server.act_port
    shown = ("-H", "Authorization: Bearer " + KEY)
    plain = Plain("--act-port", "0")
    there = re.search(r"http://127\.0\.0\.1:\d+/act", plain.line).group(0)
    for _ in range(3):
        got = curl(act, *shown, "-d", body).stdout
        check(got and got == urllib.request.urlopen(there, body.encode(), timeout=20 * SLOW).read(), got[:200])
    check(b"asks for a key" in curl(act, "-d", body).stdout)
    check(b"speaks TLS" in curl(act.replace("https", "http"), "-d", body).stdout)
    code, _, err = server.end()
    check(code == 0 and "3 requests, 0 errors" in err, err)


def page_of(server):
    """The URL of its page, from what it says on stderr."""
    line = ""
    while "/view" not in line:
        line = server.p.stderr.readline()
        check(line, "the page's address is said")
    return re.search(r"https?://\S+/view", line).group(0)


@test
def another_machine_looks_through_tls_and_with_the_key():
    """At an address that is not this machine's own alone; without both the page stays where it was."""
    server = Server("--host", "0.0.0.0", "--key", key_file(KEY), "--view", "0")
    url = page_of(server)
    host = url.split("/")[2].split(":")[0]
    check(url.startswith("https://") and host != "0.0.0.0", url)
    check(b"</html>" in curl("-k", url, "-u", "anybody:" + KEY).stdout)  # the certificate is for another address
    url = url.replace(host, "127.0.0.1")
    port = int(url.split(":")[2].split("/")[0])
    server.works("Authorization: Api-Key %s\r\n" % KEY)
    for shown in (("-u", "anybody:" + KEY), ("-H", "Authorization: Bearer " + KEY)):
        check(b"</html>" in curl(url, *shown).stdout, shown)
        check(json.loads(curl(url[:-4] + "data", *shown).stdout)["nodes"] == ["see", "act", "talk"])
        check(b"The page is at" in curl(url + "er", *shown).stdout)
    for shown in ((), ("-u", "anybody:" + KEY[:-1]), ("-u", KEY + ":"), ("-u", "a:" + KEY * 20),
                  ("-H", "Authorization: Basic !"), ("-H", "Authorization: Basic"),
                  ("-H", "Authorization: Bearer " + KEY + "x")):
        got = curl("-i", url, *shown).stdout
        check(got.startswith(b"HTTP/1.1 401") and b"www-authenticate: Basic" in got, shown, got[:300])
    check(b"speaks TLS" in curl(url.replace("https", "http")).stdout)
    asks, shows = "Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n", "Authorization: Bearer %s\r\n" % KEY
    for headers, code in ((asks, "401"), (asks + shows + "Origin: https://evil.example\r\n", "400"), (shows, "400")):
        try:
            Socket(port, headers=headers, timeout=20 * SLOW, tls=TRUSTS)
            check(False, headers)
        except Refused as e:
            check(str(e).split(" ")[1] == code, headers, e)
    looks = Socket(port, headers=asks + shows, timeout=20 * SLOW, tls=TRUSTS)
    check(json.loads(looks.message()[1])["op"] == "serverInfo" and json.loads(looks.message()[1])["channels"])
    looks.frame(1, json.dumps({"op": "subscribe", "subscriptions": [{"id": 4, "channelId": 1}]}).encode())
    looks.frame(9, b"settle")
    check(looks.read() == (10, b"settle"))
    server.works(shows)
    opcode, data = looks.message()
    check(opcode == 2 and data[:5] == b"\1\4\0\0\0" and json.loads(data[13:])["frame"] > 0, opcode, data[:60])
    check(server.end()[0] == 0)
    while opcode != 8:
        opcode, data = looks.read()
    check(int.from_bytes(data[:2], "big") == 1001, data)
    for given, host, words in (((), "0.0.0.0", ("--key", key_file(KEY))), (GIVEN, "0.0.0.0", ()),
                               (GIVEN, "127.0.0.1", ("--key", key_file(KEY)))):
        server = (Server if given else Plain)("--host", host, *words, "--view", "0")
        check(page_of(server).startswith("http://127.0.0.1:"), given, words)
        server.end()


@test
def only_tls_1_2_and_1_3_are_spoken():
    server = Server()

    def spoken(*words):
        p = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % server.port, "-CAfile",
                            box("root.pem"), *words], input=b"", capture_output=True, timeout=30 * SLOW)
        return p.stdout + p.stderr

    check(b"Verify return code: 0" in spoken("-tls1_3") and b"Verify return code: 0" in spoken("-tls1_2"))
    for old in ("-tls1", "-tls1_1"):
        check(b"alert protocol version" in spoken(old, "-cipher", "DEFAULT:@SECLEVEL=0"), old)
    check(b"alert handshake failure" in spoken("-tls1_2", "-cipher", "AES128-SHA:AES256-GCM-SHA384"))  # no forward secrecy
    server.works()


@test
def certificates_between_ours_and_the_root_are_sent():
    make_authority("middle.pem", "middle.key", ("root.pem", "root.key"))
    make_key("leaf.key", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
    make_cert("leaf.pem", "leaf.key", ("middle.pem", "middle.key"))
    write("chain.pem", content("leaf.pem") + content("middle.pem"))
    Server(given=("--tls-cert", box("chain.pem"), "--tls-key", box("leaf.key"))).works()
    server = Server(given=("--tls-cert", box("leaf.pem"), "--tls-key", box("leaf.key")))
    try:
        server.works()
        check(False, "a chain with a gap was trusted")
    except ssl.SSLCertVerificationError:
        pass


def refused(options, *words, code=3):
    """Before a model is loaded: the weights that are named are not there."""
    p = subprocess.run([PROGRAM, "serve", DEMO, "--port", "0", "--weights", box("nowhere"), *options],
                       capture_output=True, text=True, timeout=60 * SLOW)
    check(p.returncode == code and p.stderr.count("\n") == 1 and all(w in p.stderr for w in words), options, p)


@test
def files_that_do_not_fit_are_refused_at_once():
    cert, key = box("own.pem"), box("own.key")
    openssl("pkey", "-in", "own.key", "-aes256", "-passout", "pass:secret", "-out", "locked.key")
    openssl("ec", "-in", "own.key", "-aes256", "-passout", "pass:secret", "-out", "locked_old.key")
    make_key("weak.key", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024")
    make_cert("weak.pem", "weak.key", ("root.pem", "root.key"))
    make_cert("old.pem", "own.key", ("root.pem", "root.key"), days="-1")
    for name in ("locked.key", "locked_old.key"):
        os.chmod(box(name), 0o600)
    os.mkfifo(box("fifo"), 0o600)
    damaged = content("own.pem") + content("root.pem").replace(b"MII", b"MI!", 1)
    refused(("--tls-cert", cert), "--tls-cert needs --tls-key", code=2)
    refused(("--tls-key", key), "--tls-key needs --tls-cert", code=2)
    for bad, words in ((box("none"), "No such file"), (BOX, "not a regular file"), (box("fifo"), "not a regular file"),
                       (write("empty", ""), "no certificate"), (write("words", "a certificate\n"), "no certificate"),
                       (key, "no certificate"), (box("weak.pem"), "too small"), (box("old.pem"), "expired"),
                       (write("damaged.pem", damaged), "certificate 2"),
                       (write("many.pem", content("own.pem") * 20), "too many"),
                       (write("large.pem", b"\n" * (300 << 10)), "256 KiB")):
        refused(("--tls-cert", bad, "--tls-key", key), "--tls-cert " + bad, words)
    for bad, words in ((box("none"), "No such file"), (BOX, "not a regular file"), (box("fifo"), "not a regular file"),
                       (write("no.key", "a key\n"), "no private key"), (cert, "others than its owner"),
                       (write("cert.key", content("own.pem")), "no private key"),
                       (write("open.key", content("own.key"), 0o644), "chmod 600"),
                       (write("group.key", content("own.key"), 0o640), "chmod 600"),
                       (box("other.key"), "not the key of the certificate in " + cert),
                       (box("locked.key"), "pass phrase"), (box("locked_old.key"), "pass phrase"),
                       (write("cut.key", content("own.key")[:100]), "no private key")):
        refused(("--tls-cert", cert, "--tls-key", bad), "--tls-key " + bad, words)
    os.chmod(cert, 0o644)
    refused(("--tls-cert", cert, "--tls-key", key, "--groot-port", "0", "--host", "0.0.0.0", "--key", key_file(KEY)),
            "--groot-port", "no TLS")
    refused(("--tls-cert", cert, "--tls-key", key), "nowhere")  # these fit: it is the weights now


@test
def groots_port_stays_on_this_machine():
    server = Server("--groot-port", "0", "--act-port", "0")
    check(" and tcp://127.0.0.1:" in server.line, server.line)
    server.works()
    check(server.end()[0] == 0)


@test
def probe_believes_whom_it_is_told():
    server = Server()

    def probe(host, *words):
        return subprocess.run([PROGRAM, "probe", "wss://%s:%d" % (host, server.port), "--count", "2", *words],
                              capture_output=True, text=True, timeout=60 * SLOW)

    for words in (("127.0.0.1",), ("localhost",), ("127.0.0.1", "--server-name", "localhost")):
        p = probe(*words, "--ca-file", box("root.pem"))
        check(p.returncode == 0 and "2 requests" in p.stdout, p)
    check(probe("127.0.0.1", "--ca-file", box("own.pem")).returncode == 0)  # the server's own, and none above it
    for words, why in ((("127.0.0.1",), "signed by nobody who is believed"),
                       (("127.0.0.1", "--ca-file", box("root.pem"), "--server-name", "arm"), "for another host")):
        p = probe(*words)
        check(p.returncode == 3 and why in p.stderr and "--" in p.stderr and not p.stdout, p)
    p = subprocess.run([PROGRAM, "probe", "ws://127.0.0.1:1", "--ca-file", box("root.pem")], capture_output=True, text=True)
    check(p.returncode == 2 and "--ca-file is for TLS" in p.stderr, p)
    plain = Plain()
    p = subprocess.run([PROGRAM, "probe", "https://127.0.0.1:%d" % plain.port, "--ca-file", box("root.pem")],
                       capture_output=True, text=True, timeout=60 * SLOW)
    check(p.returncode == 3 and "TLS" in p.stderr and not p.stdout, p)


def raw(server, data=b"", act=False):
    s = socket.create_connection(("127.0.0.1", server.act_port if act else server.port), timeout=20 * SLOW)
    s.sendall(data)
    return s


def rest_of(s):
    got = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return got
            got += more
    except OSError:
        return got


def hello():
    """The first bytes of a client that speaks TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = TRUSTS.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()


def idles(server, seconds=0.5):
    """It does not spin."""
    before = server.cpu_s()
    time.sleep(seconds)
    check(server.cpu_s() - before < 0.6 * seconds, "the server spins")


@test
def who_speaks_no_tls_is_told_or_closed():
    began = time.monotonic()
    server = Server("--act-port", "0")
    draw = random.Random(3)
    for act in (False, True):
        check(b" 400 " in rest_of(raw(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", act)))
        check(b"wss://" in rest_of(raw(server, b"POST /act HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", act)))
        for i in range(100):
            cut = bytearray(hello())
            for _ in range(draw.randrange(1, 6)):
                cut[draw.randrange(len(cut))] = draw.randrange(256)
            s = raw(server, [bytes(cut), draw.randbytes(draw.randrange(1, 600)), bytes(cut) * 3][i % 3], act)
            try:
                s.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it is closed already
            check(b"HTTP/1.1 200" not in rest_of(s))
    server.works()
    idles(server)
    code, _, err = server.end()
    told = err.count("a TLS handshake failed")
    check(code == 0 and 1 <= told <= 2 + time.monotonic() - began, err)  # not one line for each of two hundred


@test
def handshakes_that_stop_keep_no_robot_out():
    server = Server("--max-connections", "2", "--act-port", "0")
    first = hello()
    waits = []
    for i in range(400):
        waits.append(raw(server, [b"", first[:5], first[:len(first) // 2], first][i % 4], act=i % 2 == 1))
        if i % 50 == 49:
            server.works()
            asked = curl("https://127.0.0.1:%d/act" % server.act_port, "-d", "{}").stdout
            check((b"observation/image" if SMALL else b"prompt") in asked, asked)  # what it misses first
    idles(server)
    begun = time.monotonic()
    check(waits[-1].recv(65536) and rest_of(waits[-1]) == b"")  # its own hello is answered, and then it is ended
    check(time.monotonic() - begun < 20 * SLOW)
    server.works()
    check(server.end()[0] == 0)


@test
def behind_the_handshake_nobody_holds_a_place():
    server = Server("--max-connections", "2", "--act-port", "0")
    silent = []
    for i in range(300):
        s = TRUSTS.wrap_socket(raw(server, act=i % 3 == 2), server_hostname="127.0.0.1")
        if i % 2:
            s.sendall(b"GET / HTT")
        silent.append(s)
        if i % 60 == 59:
            server.works()
    idles(server)
    descriptors = len(os.listdir("/proc/%d/fd" % server.p.pid))
    for s in silent:
        s.close()
    server.works()
    deadline = time.monotonic() + 20 * SLOW
    while len(os.listdir("/proc/%d/fd" % server.p.pid)) > 60 and time.monotonic() < deadline:
        time.sleep(0.1)
    left = len(os.listdir("/proc/%d/fd" % server.p.pid))
    check(left <= 60, "descriptors stay open", descriptors, left)
    check(server.end()[0] == 0)


@test
def who_reads_nothing_delays_nobody():
    server = Server("--stall-s", "2", "--max-connections", "3")
    robot = server.connect()
    s = server.connect()
    s.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.s.settimeout(3)
    ask = pack({**OBSERVATION, "tectum": {"timing": True}})
    stop = time.monotonic() + 5 * SLOW
    try:
        while time.monotonic() < stop:
            s.frame(9, bytes(100))  # pings, whose answers it does not read
            s.frame(2, ask)
            check(robot.infer(OBSERVATION)["actions"].shape == (16, 4))
    except OSError:
        pass  # nothing more is taken from it
    check(robot.infer(OBSERVATION)["actions"].shape == (16, 4))
    s.s.close()
    idles(server)
    server.works()
    check(server.end()[0] == 0)


@test
def who_takes_nothing_is_closed():
    """Pings, whose answers a client does not read: what the system holds of them seems to be taken."""
    for server in (Plain("--stall-s", "2"), Server("--stall-s", "2")):
        robot, s = server.connect(), server.connect()
        s.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.s.settimeout(20 * SLOW)
        try:
            while True:
                s.frame(9, bytes(100))
        except socket.timeout:
            check(False, "it is not closed", type(server))
        except OSError:
            pass  # closed
        check(robot.infer(OBSERVATION)["actions"].shape == (16, 4))
        check(server.end()[0] == 0)


@test
def an_end_is_told_through_tls():
    """A close frame arrives whole; so does what a half-closed client asked for; and the program ends in time."""
    server = Server()
    s = server.connect()
    s.send({"observation/image": "no picture"})
    text, code, _ = s.failure()
    check("tectum" in text and code == 1011, text, code)
    s = server.connect()
    cut = server.connect()
    cut.s.shutdown(socket.SHUT_RDWR)  # without the words of TLS
    began = time.monotonic()
    status, _, err = server.end()
    opcode, data = s.read()
    check(status == 0 and opcode == 8 and int.from_bytes(data[:2], "big") == 1001, status, opcode, data, err)
    check(time.monotonic() - began < 10 * SLOW)


@test
def nothing_is_renegotiated_or_resumed():
    server = Server()
    p = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % server.port, "-tls1_2", "-CAfile",
                        box("root.pem")], input=b"R\n", capture_output=True, timeout=30 * SLOW)
    check(b"no renegotiation" in p.stderr, p.stderr)
    once = server.connect()
    again = ssl.create_default_context(cafile=box("root.pem"))
    with again.wrap_socket(raw(server), server_hostname="127.0.0.1", session=None) as s:
        check(not s.session or not s.session.has_ticket)
    check(once.infer(OBSERVATION)["actions"].shape == (16, 4))


# A client that changes its keys as fast as it can (TLS 1.3): each change is a record without data.
FLOOD = r"""
#include <openssl/ssl.h>
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
int main(int n, char **words)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(words[n - 1]))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    signal(SIGPIPE, SIG_IGN);
    int fd = socket(AF_INET, SOCK_STREAM, 0), i = 0;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) || SSL_set_fd(ssl, fd) != 1 || SSL_connect(ssl) != 1)
        return 2;
    while (i < 2000000 && SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl) == 1)
        i++;
    printf("%d\n", i);
    return 0;
}
"""


@test
def records_without_data_do_not_hold_others_up():
    write("flood.c", FLOOD)
    if subprocess.run(["cc", "-o", box("flood"), box("flood.c"), "-lssl", "-lcrypto"], capture_output=True).returncode:
        return "no C compiler, or no OpenSSL to build with"
    server = Server()
    robot = server.connect()
    floods = [subprocess.Popen([box("flood"), str(server.port)], stdout=subprocess.PIPE) for _ in range(2)]
    for _ in range(20):
        check(robot.infer(OBSERVATION)["actions"].shape == (16, 4))
    for p in floods:
        out, _ = p.communicate(timeout=60 * SLOW)
        check(p.returncode == 0 and int(out) > 10, p.returncode, out)
    server.works()
    check(server.end()[0] == 0)


@test
def several_robots_at_once_have_their_own_bytes():
    plain, server = Plain(), Server()
    asked = [{**observation(i, beside=1 << 20), "tectum": {"seed": i}} for i in range(6)]
    s = plain.connect()
    expected = [s.infer(a)["actions"].data for a in asked]
    wrong = []

    def robot(i):
        mine = server.connect()
        for _ in range(5):
            if mine.infer(asked[i])["actions"].data != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=robot, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    code, _, err = server.end()
    check(not wrong and code == 0 and "30 requests, 0 errors" in err, wrong, err)


@test
def a_connection_thread_that_hangs_holds_no_reply_back():
    """What is sent past the library is encrypted as everything else is."""
    if "asan" in PROGRAM or "tsan" in PROGRAM:
        return "a sanitizer must be loaded first"
    write("stall.c", STALL)
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", box("stall.so"), box("stall.c"), "-ldl"]).returncode:
        return "no C compiler"
    server = Server(MANY, "--set", "nodes.act.steps=1000", env={"LD_PRELOAD": box("stall.so")})
    robot = server.connect()
    bad = TRUSTS.wrap_socket(raw(server), server_hostname="127.0.0.1")
    check(b" 400 " in rest_of(raw(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")))
    robot.send(OBSERVATION)
    bad.sendall(b"STALL 20 ")
    check(robot.reply()["actions"].shape == (16, 4))
    time.sleep(1.5)  # on a fast machine the frame ends before the thread has hung for the second that is told
    server.p.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    server.p.send_signal(signal.SIGTERM)
    _, err = server.p.communicate(timeout=20 * SLOW)
    check(server.p.returncode == 5 and "tectum serve: a second signal" in err, err)
    for words in ("a TLS handshake failed", "the connection thread does not come round"):  # of which pipeline they are
        check("tectum serve demo_metaworld: " + words in err, err)


def print_times():
    """A request over a plain connection and over TLS, in turns; then under a flood of handshakes."""
    plain, server = Plain(), Server()
    one, two = plain.connect(), server.connect()
    large = observation(1, beside=1 << 20)
    times({"plain": lambda: one.infer(OBSERVATION), "TLS": lambda: two.infer(OBSERVATION)})
    times({"plain, 1 MiB": lambda: one.infer(large), "TLS, 1 MiB": lambda: two.infer(large)}, rounds=100)
    stop, made = [], [0] * 4

    def flood(i):
        while not stop:
            TRUSTS.wrap_socket(raw(server), server_hostname="127.0.0.1").close()
            made[i] += 1

    threads = [threading.Thread(target=flood, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    began = time.monotonic()
    times({"plain, beside": lambda: one.infer(OBSERVATION), "TLS, beside": lambda: two.infer(OBSERVATION)})
    stop.append(True)
    for t in threads:
        t.join()
    print("beside %.0f handshakes a second" % (sum(made) / (time.monotonic() - began)))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.exit(print_times() if "--times" in sys.argv else main())
