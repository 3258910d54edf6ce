"""A server of the table's pipeline that a script starts, ends and kills."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "tools/demo")]

from policy import Server

READY_S = 60


class Engine:
    """`tectum serve` with memories in `folder`; they are kept over a restart. `missed` counts requests whose actions came after
    the pipeline's deadline, by cause, of servers that ended in order; `processor_s` the time of all processors that servers took since
    they were ready."""

    def __init__(self, folder, pipeline="pipelines/table.lua", options=(), program=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        stores = [f"--set=resources.{name}.store={self.folder / name}" for name in ("mem", "log")]
        self.command = [str(program or ROOT / "build/release/tectum"), "serve", pipeline, "--late-ok", "--port", "0", "--threads", "1",
                        "--format", "json", *stores, *options]
        self.process, self.missed, self.processor_s = None, {}, 0.0

    def forget(self):
        """Begins with empty memories."""
        for file in self.folder.glob("*"):
            file.unlink()
        return self

    def start(self, options=()):
        """`options` of `tectum serve` are of this start alone."""
        with open(self.folder.with_suffix(".err"), "ab") as errors:
            self.process = subprocess.Popen([*self.command, *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
        begin = time.monotonic()
        for line in self.process.stdout:
            if line.startswith('{"serving"'):
                self.begun = self.used()
                self.client = Server("127.0.0.1", int(json.loads(line)["url"].rsplit(":", 1)[1]))
                return self
            if time.monotonic() - begin > READY_S:
                break
        raise SystemExit(f"the server did not start; {self.folder.with_suffix('.err')} says why")

    def infer(self, obs):
        return self.client.infer(obs)

    def used(self):
        """Seconds of all processors that the server took so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        """As a power cut would."""
        self.processor_s += self.used() - self.begun
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.processor_s += self.used() - self.begun
            self.process.terminate()
            rest, _ = self.process.communicate()
            for cause, count in json.loads(rest.splitlines()[-1])["misses"].items():
                self.missed[cause] = self.missed.get(cause, 0) + count
