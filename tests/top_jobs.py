"""top_jobs.py - `tectum top` as a job of a shell, on a terminal: this program is the shell. It leads the
terminal's session, gives the foreground to its jobs and takes it back, as shells do."""

import fcntl
import os
import pty
import select
import signal
import sys
import termios
import time

from serve_harness import BOX, OBSERVATION, PROGRAM, SLOW, Server, check, main, test

DEMO = "pipelines/demo_metaworld.lua"
CONTROL = os.path.join(BOX, "control")
COOKED = termios.ECHO | termios.ICANON


class Shell:
    """The terminal, and one job on it."""

    def __init__(self):
        self.screen, self.terminal = pty.openpty()
        fcntl.ioctl(self.terminal, termios.TIOCSCTTY, 0)
        self.modes = termios.tcgetattr(self.terminal)

    def start(self, *options, foreground=True):
        arguments = [PROGRAM, "top", "--control", CONTROL, *options]
        self.job = os.fork()
        if self.job == 0:
            os.setpgid(0, 0)
            if foreground:
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.tcsetpgrp(self.terminal, os.getpgrp())
            for number in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            for fd in (0, 1, 2):
                os.dup2(self.terminal, fd)
            os.execv(PROGRAM, arguments)

    def foreground(self):
        os.tcsetpgrp(self.terminal, self.job)
        os.kill(self.job, signal.SIGCONT)

    def background(self):
        os.tcsetpgrp(self.terminal, os.getpgrp())
        os.kill(self.job, signal.SIGCONT)

    def take_back(self):
        os.tcsetpgrp(self.terminal, os.getpgrp())

    def reads(self, words, key=""):
        """Press a key, and read until these words are on the screen."""
        os.write(self.screen, key.encode())
        seen, end = b"", time.monotonic() + 30 * SLOW
        while words.encode() not in seen:
            check(time.monotonic() < end and select.select([self.screen], [], [], 30 * SLOW)[0], key, words, seen[-900:],
                  self.state())
            seen += os.read(self.screen, 1 << 16)

    def state(self):
        return open("/proc/%d/stat" % self.job).read().rsplit(")", 1)[1].split()[0]

    def changes(self):
        """What the job came to: ("stopped", signal), ("killed", signal) or ("ended", status)."""
        end = time.monotonic() + 30 * SLOW
        while True:
            pid, status = os.waitpid(self.job, os.WUNTRACED | os.WNOHANG)
            if pid:
                break
            check(time.monotonic() < end, "the job goes on as it was", self.state())
            time.sleep(0.01)
        if os.WIFSTOPPED(status):
            return "stopped", os.WSTOPSIG(status)
        return ("killed", os.WTERMSIG(status)) if os.WIFSIGNALED(status) else ("ended", os.WEXITSTATUS(status))

    def is_cooked(self):
        return termios.tcgetattr(self.terminal)[3] & COOKED == COOKED

    def is_raw(self):
        """Whether keys come one by one, now or soon: the job reads after it has shown something."""
        end = time.monotonic() + 30 * SLOW
        while termios.tcgetattr(self.terminal)[3] & COOKED and time.monotonic() < end:
            time.sleep(0.01)
        return termios.tcgetattr(self.terminal)[3] & COOKED == 0


shell = None  # the session has one terminal


def begin():
    """A robot that has run, and a shell on a terminal as it was at first."""
    server = Server(DEMO, "--control", CONTROL, "--late-ok")
    server.connect().infer(OBSERVATION)
    shell.take_back()
    termios.tcsetattr(shell.terminal, termios.TCSANOW, shell.modes)
    termios.tcflush(shell.terminal, termios.TCIFLUSH)
    while select.select([shell.screen], [], [], 0)[0]:
        os.read(shell.screen, 1 << 16)
    return server


@test
def stopped_by_a_key_it_gives_the_terminal_back_and_goes_on():
    server = begin()
    shell.start("--every-ms", "3600000")
    shell.reads("R record")
    check(shell.is_raw())
    os.write(shell.screen, b"\x1a")
    check(shell.changes() == ("stopped", signal.SIGTSTP) and shell.is_cooked())
    shell.take_back()
    shell.foreground()
    check(shell.is_raw(), "keys again")
    shell.reads("strikes 0", "p")
    os.write(shell.screen, b"\x1a")  # and once more
    check(shell.changes() == ("stopped", signal.SIGTSTP) and shell.is_cooked())
    shell.foreground()
    check(shell.is_raw())
    os.write(shell.screen, b"q")
    check(shell.changes() == ("ended", 0) and shell.is_cooked())
    server.end()


@test
def a_job_in_the_background_shows_figures_and_leaves_the_terminal_alone():
    server = begin()
    shell.start("--every-ms", "50", foreground=False)
    for _ in range(3):
        shell.reads("headroom")
    check(shell.state() not in "Tt" and shell.is_cooked(), shell.state())
    shell.foreground()
    shell.reads("R record")
    check(shell.is_raw(), "keys once it is in front")
    os.write(shell.screen, b"q")
    check(shell.changes() == ("ended", 0) and shell.is_cooked())
    shell.take_back()
    shell.start("--every-ms", "50", "--count", "3", foreground=False)
    check(shell.changes() == ("ended", 0) and shell.is_cooked())
    server.end()


@test
def stopped_and_continued_in_the_background_it_reads_no_key():
    server = begin()
    shell.start("--every-ms", "50")
    shell.reads("R record")
    os.write(shell.screen, b"\x1a")
    check(shell.changes() == ("stopped", signal.SIGTSTP))
    shell.background()
    shell.reads("headroom")
    os.write(shell.screen, b"this is for the shell\n")
    shell.reads("headroom")
    check(shell.state() not in "Tt" and shell.is_cooked())
    os.kill(shell.job, signal.SIGTERM)
    check(shell.changes() == ("killed", signal.SIGTERM) and shell.is_cooked())
    server.end()


@test
def stopped_by_a_signal_that_nobody_catches_it_leaves_no_terminal_without_echo():
    server = begin()
    for ends in (signal.SIGTERM, None):
        shell.take_back()
        shell.start("--every-ms", "50")
        shell.reads("R record")
        check(shell.is_raw())
        os.kill(shell.job, signal.SIGSTOP)
        check(shell.changes() == ("stopped", signal.SIGSTOP))
        shell.background()
        if ends:
            os.kill(shell.job, ends)
            check(shell.changes() == ("killed", ends) and shell.is_cooked(), shell.modes)
            continue
        end = time.monotonic() + 30 * SLOW
        while not shell.is_cooked():
            check(time.monotonic() < end, "no echo")
            time.sleep(0.01)
        shell.reads("headroom")
        own = termios.tcgetattr(shell.terminal)
        own[3] &= ~termios.ECHO  # what the shell sets is the shell's
        termios.tcsetattr(shell.terminal, termios.TCSANOW, own)
        os.kill(shell.job, signal.SIGTERM)
        check(shell.changes() == ("killed", signal.SIGTERM))
        check(termios.tcgetattr(shell.terminal)[3] & COOKED == termios.ICANON)
    server.end()


if os.fork() == 0:  # a child leads no process group, and may lead a session
    os.setsid()
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    shell = Shell()
    status = main()
    sys.stdout.flush()
    sys.exit(status)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
