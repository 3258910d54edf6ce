"""mcap_file.py - a reader of MCAP files for tests, of the standard library alone."""

import json
import struct
import zlib


def records(data):
    """Opcode and content of each record, also of those in chunks."""
    at = 8
    while at + 9 <= len(data):
        opcode, n = struct.unpack_from("<BQ", data, at)
        content = data[at + 9:at + 9 + n]
        at += 9 + n
        if len(content) < n:
            return
        if opcode == 6:  # a chunk
            _, _, size, crc, name = struct.unpack_from("<QQQII", content)
            assert name == 0 and size == struct.unpack_from("<Q", content, 32)[0]
            assert zlib.crc32(content[40:]) == crc, "the checksum of a chunk"
            yield from records(bytes(8) + content[40:])
        yield opcode, content
        if opcode == 15:  # the end of the data
            return


def text_at(data, at):
    n = struct.unpack_from("<I", data, at)[0]
    return data[at + 4:at + 4 + n].decode(), at + 4 + n


class Recording:
    """Messages by topic: (frame, data), JSON parsed; attachments by name."""

    def __init__(self, path):
        self.data = open(path, "rb").read()
        assert self.data[:8] == b"\x89MCAP0\r\n"
        channels, self.messages, self.attachments = {}, {}, {}
        for opcode, c in records(self.data):
            if opcode == 4:
                topic, at = text_at(c, 4)
                channels[struct.unpack_from("<H", c)[0]] = topic, text_at(c, at)[0]
            elif opcode == 5:
                channel, frame = struct.unpack_from("<HI", c)
                topic, encoding = channels[channel]
                body = json.loads(c[22:]) if encoding == "json" else c[22:]
                self.messages.setdefault(topic, []).append((frame, body))
            elif opcode == 9:
                name, at = text_at(c, 16)
                media, at = text_at(c, at)
                n = struct.unpack_from("<Q", c, at)[0]
                self.attachments[name] = c[at + 8:at + 8 + n]

    def of(self, topic):
        return [body for _, body in self.messages.get(topic, [])]


def rewritten(data, topic, change):
    """The file without its summary, and with what change(object) gives in place of each JSON message of a topic (of others
    their bytes): None leaves it out, bytes are taken as they are."""
    channels = {}

    def changed(records):
        out, at = b"", 0
        while at + 9 <= len(records):
            opcode, n = struct.unpack_from("<BQ", records, at)
            body, at = records[at + 9:at + 9 + n], at + 9 + n
            if opcode == 15:
                break
            if opcode == 4:
                channels[struct.unpack_from("<H", body)[0]] = text_at(body, 4)[0]
            if opcode == 5 and channels[struct.unpack_from("<H", body)[0]] == topic:
                try:
                    message = change(json.loads(body[22:]))
                except ValueError:
                    message = change(bytes(body[22:]))
                if message is None:
                    continue
                body = body[:22] + (message if isinstance(message, bytes) else json.dumps(message).encode())
            if opcode == 6:  # an uncompressed chunk, then without a checksum
                begin = 40 + struct.unpack_from("<I", body, 28)[0]
                inner = changed(body[begin:])
                body = body[:16] + struct.pack("<QI", len(inner), 0) + body[28:begin - 8] + struct.pack("<Q", len(inner)) + inner
            out += struct.pack("<BQ", opcode, len(body)) + body
        return out

    return data[:8] + changed(data[8:])
