# SPDX-License-Identifier: MIT
"""top_screen.py CLRSNAP PROGRAM...: `clrsnap top` on a terminal of its own, whose screen is read: keys,
sizes, and that the terminal is as it was afterwards, however the command ends."""
import fcntl
import glob
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import pyte

clrsnap, *program = sys.argv[1:]


class Terminal:
    def __init__(self, rounds="100", rows=24, columns=80, arguments=()):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.fd, self.slave = pty.openpty()
        self.set_size(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            os.environ.update(TERM="linux", LC_ALL="C.UTF-8")
            os.execv(clrsnap, [clrsnap, "top", "--interval", "0.3", *arguments, "--", *program, rounds])

    def set_size(self, rows, columns):
        # The kernel sends SIGWINCH.
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.set_size(rows, columns)

    def read(self):
        if select.select([self.fd], [], [], 0.1)[0]:
            data = os.read(self.fd, 65536)
            self.raw += data
            self.stream.feed(data)

    def text(self):
        return "\n".join(self.screen.display)

    def fail(self, why):
        sys.exit(f"FAIL: {why}\n{self.text()}\n{self.raw[-300:]!r}")

    def until(self, what, *patterns, gone=(), footer=None):
        """Reads until all patterns are on the screen, and none of those in `gone`."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            self.read()
            text = self.text()
            here = all(re.search(p, text, re.M) for p in patterns)
            last = footer is None or self.screen.display[-1].startswith(footer)
            if here and last and not any(re.search(p, text, re.M) for p in gone):
                return text
        self.fail(f"{what}: not on the screen: {patterns}, or still there: {gone}")

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self, what, code):
        end = time.monotonic() + 30
        pid = 0
        while not pid:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if time.monotonic() > end:
                self.fail(f"{what}: it does not end")
        self.read()
        got = os.waitstatus_to_exitcode(status)
        if got != code:
            self.fail(f"{what}: exit code {got}, not {code}")
        if self.raw.rfind(b"\x1b[?25h") < self.raw.rfind(b"\x1b[?25l"):
            self.fail(f"{what}: no cursor")
        after = termios.tcgetattr(self.slave)
        if after != self.before:
            self.fail(f"{what}: the terminal's modes were changed:\n{self.before}\n{after}")
        os.close(self.slave)
        os.close(self.fd)


ROW = r"^ +\d+\.\d +\d+\.\d  "

t = Terminal()
t.until("methods", r"^clrsnap top: \d+ ", r"^ self %  total %  method", ROW + r"Split\.Program\.Burn",
        ROW + r"\[libcoreclr", r"^CPU +\d", footer="q quit")
t.press("t")
t.until("sorted by total", "methods, last 10 s, by total")
t.press("n")
t.until("sorted by name", "by name")
t.press("s")
t.press("w")
t.until("since the start", "methods, since the start, by self")
t.press("N")
t.until("native frames off", "native frames off", ROW + r"Split\.Program\.Burn", gone=[r"\[libcoreclr"])
t.press("N")
t.until("native frames on", r"\[libcoreclr", gone=["native frames off"])
t.press("/sixt")
t.until("a filter", r"^/sixt_", ROW + r"Split\.Program\.Sixty", gone=["Burn"])
t.press("x\x7f\r")
t.until("the filter set", r'with "sixt"', ROW + r"Split\.Program\.Sixty", gone=["Burn"], footer="q quit")
t.press("/\x1b")
t.until("no filter", ROW + r"Split\.Program\.Burn", gone=["sixt", "^/"])
t.press("\t")
t.until("threads", r"^ +tid   CPU %", r"^ +\d+ +\d+\.\d +\d+\.\d  Splitter +Split\.Program\.Burn")
t.press("\t")
t.until("methods again", r"^ self %  total %  method")
t.press("?")
t.until("help", "^Keys", r"^  tab +methods or threads", gone=[ROW])
t.press("x")
t.until("no help", ROW, gone=["^Keys"])

# Frozen: the table stays as it is, though samples come.
t.press(" ")
before = t.until("frozen", "^FROZEN: methods", "space run")  # the last line is drawn last
for _ in range(15):
    t.read()
if t.text() != before:
    t.fail(f"a frozen screen changes: {before}")
t.press(" ")
t.until("running", ROW, gone=["FROZEN"])

# Down and home.
first = re.search(ROW + r"(\S+)", t.until("a table", ROW), re.M).group(1)
t.press("\x1b[B")
t.until("scrolled", ROW, gone=[ROW + re.escape(first)])
t.press("\x1b[1~")
t.until("at the top", ROW + re.escape(first))

for rows, columns in (40, 160), (10, 40), (5, 20), (24, 80):
    t.resize(rows, columns)
    t.until(f"{columns} by {rows}", "^clrsnap top", footer="q quit")
t.until("80 by 24", ROW + r"Split\.Program\.Burn")
t.press("q")
t.end("q", 0)

# Other ends: Ctrl-C, a signal, a fatal one, the program's own.
t = Terminal(arguments=["--threads"])
t.until("threads at once", "Splitter")
t.press("\x03")
t.end("Ctrl-C", 0)
t = Terminal()
t.until("a table", ROW)
os.kill(t.pid, signal.SIGTERM)
t.end("SIGTERM", 0)
t = Terminal()
watched = int(re.search(r"^clrsnap top: (\d+)", t.until("a table", ROW)).group(1))
os.kill(t.pid, signal.SIGSEGV)
t.end("SIGSEGV", -signal.SIGSEGV)
os.kill(watched, signal.SIGKILL)
for name in glob.glob(os.environ["TMPDIR"] + "/clrsnap-top-*"):
    os.unlink(name)
t = Terminal(rounds="1")
t.end("the program's end", 0)
name = re.search(rb"what the program has written is in (\S+)", t.raw).group(1)
assert open(name).read().count("truth") == 3
os.unlink(name)
t = Terminal(rounds="no-number")
t.end("the program's death", 134)
os.unlink(re.search(rb"what the program has written is in (\S+)", t.raw).group(1))
