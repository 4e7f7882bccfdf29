# SPDX-License-Identifier: MIT
"""Other tools that observe the program while it is recorded: the program's result must be the same, and
the tools' own results must exist."""
import glob
import os
import re
import shutil
import socket
import struct
import subprocess
import time

from trial import PATIENCE, Failure, Trial, entries, read

TIMES = 2  # that each looks
TRIES = 10


class Beside(Trial):
    """A busy program that lives for as long as somebody looks at it."""
    program_name = "busy"
    needs = None

    def __init__(self, *args):
        super().__init__(*args)
        self.end_file = f"{self.work}/end"

    def run(self):
        if self.needs and not shutil.which(self.needs):
            raise Failure(f"there is no {self.needs}, which scripts/setup.sh installs")
        return super().run()

    def finish_recorded(self, process, pid):
        try:
            self.wait_until_ready(process)
            for _ in range(TIMES):
                self.look_at(pid() if callable(pid) else pid)
                time.sleep(self.rng.random() * 0.3)
            self.wait_until_recorded(pid() if callable(pid) else pid)
        except BaseException:
            self.end(process)
            raise
        with open(self.end_file, "w", encoding="utf-8"):
            pass

    @staticmethod
    def wait_until_recorded(pid):
        """A recording that the tool has held up begins late: the program lives until it has been recorded for some CPU
        time. If it never is, the summary shows that."""
        def used():
            return sum(int(ticks) for ticks in read(f"/proc/{pid}/stat").rpartition(")")[2].split()[11:13])

        begun, end = None, time.monotonic() + PATIENCE
        while (begun is None or used() - begun < 0.5 * os.sysconf("SC_CLK_TCK")) and time.monotonic() < end:
            if begun is None and any(read(f"{task}/comm") == ".clrsnap\n" for task in entries(f"/proc/{pid}/task")):
                begun = used()
            time.sleep(0.02)

    def launched(self):
        options = self.options("launch")
        process = self.start("recorded", [self.clrsnap, "record", *options, "-o", f"{self.work}/stacks.clrsnap", "--",
                                          *self.program(f"@{self.end_file}")])
        self.finish_recorded(process, lambda: self.child(process.pid))
        code = self.finish(process, "the recorded program")
        self.check_summary(self.text("recorded.err"))
        return code

    def attached(self):
        process = self.start("recorded", self.program(f"@{self.end_file}"))
        self.wait_until_ready(process)
        recorder = self.start("command", [self.clrsnap, "record", *self.options("attach"), "-o",
                                          f"{self.work}/stacks.clrsnap", str(process.pid)])
        self.recordings = 1
        try:
            self.finish_recorded(process, process.pid)
            code = self.finish(process, "the recorded program")
        except BaseException:
            self.end(recorder)
            raise
        if self.finish(recorder, "the command") != 0:
            raise Failure(f"the command failed: {self.text('command.err').strip()}")
        self.check_summary(self.text("command.err"))
        return code

    def child(self, parent):
        # The command's oldest child is the program; one that scans its thread pool comes later.
        found = subprocess.run(["pgrep", "-o", "-P", str(parent)], capture_output=True, text=True, check=False).stdout
        if not found:
            raise Failure("the recorded program has ended before anybody looked at it")
        return int(found)

    def other(self, command, codes=(0,)):
        """Somebody else's program, which has to succeed; what it said."""
        self.commands.append(" ".join(command))
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"{command[0]} hangs") from None
        if done.returncode not in codes:
            raise Failure(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout + done.stderr


class Gdb(Beside):
    needs = "gdb"

    def look_at(self, pid):
        said = self.other(["gdb", "-nx", "-p", str(pid), "-batch", "-ex", "set auto-solib-add off", "-ex", "info threads",
                           "-ex", f"shell sleep {self.rng.random():.2f}", "-ex", "detach"])
        if not re.search(r"detached", said) or said.count("LWP") < 3:
            raise Failure(f"gdb did not attach: {said[-500:]}")


class Strace(Beside):
    needs = "strace"

    def look_at(self, pid):
        log = f"{self.work}/strace"
        self.other(["timeout", "-s", "INT", "1.5", "strace", "-f", "-o", log, "-p", str(pid)], codes=(124,))
        with open(log, encoding="utf-8", errors="replace") as file:
            if sum(1 for line in file if "(" in line) < 10:
                raise Failure("strace saw nothing")


class CreateDump(Beside):
    """The runtime's program for dumps, by itself and as dotnet-dump asks for it: over the diagnostics port."""

    def look_at(self, pid):
        dump = f"{self.work}/asked.dump"
        if self.rng.random() < 0.5:
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
                runtime = os.path.dirname(re.search(r"/\S*libcoreclr\.so", maps.read())[0])
            self.other([f"{runtime}/createdump", "--normal", "-f", dump, str(pid)])
        else:
            self.ask(pid, dump)
        if not os.path.exists(dump) or os.path.getsize(dump) < 100000:
            raise Failure("createdump wrote nothing")
        os.remove(dump)

    def ask(self, pid, dump):
        """DOTNET_IPC_V1, command set 1, command 1: GenerateCoreDump."""
        self.commands.append(f"GenerateCoreDump of {pid}")
        name = (dump + "\0").encode("utf-16-le")
        payload = struct.pack("<I", len(dump) + 1) + name + struct.pack("<II", 1, 0)
        with socket.socket(socket.AF_UNIX) as port:
            port.settimeout(300)
            port.connect(max(glob.glob(f"/tmp/dotnet-diagnostic-{pid}-*-socket"), key=os.path.getmtime))
            port.sendall(struct.pack("<14sHBBH", b"DOTNET_IPC_V1\0", 20 + len(payload), 1, 1, 0) + payload)
            answer = port.recv(64)
        if len(answer) < 24 or answer[16:18] != b"\xff\x00" or answer[20:24] != bytes(4):
            raise Failure(f"the runtime refused the dump: {answer.hex()}")


class Perf(Beside):
    needs = "perf"

    def look_at(self, pid):
        data = f"{self.work}/perf.data"
        for _ in range(TRIES):
            # perf gives up when a thread that it has listed ends before perf opens it.
            self.other(["perf", "record", "-q", "-g", "-F", "999", "-p", str(pid), "-o", data, "--", "sleep", "1"],
                       codes=(0, 255))
            if os.path.exists(data) and os.path.getsize(data) > 20000:
                return
        raise Failure("perf saw nothing")


class Profiler(Beside):
    """One in the process, of the usual make: SIGPROF by CPU time, SIGUSR1 by the clock, unwinding in the handler."""

    def __init__(self, *args):
        super().__init__(*args)
        # This profiler's signals kill a program in the middle of a null reference, also without clrsnap.
        self.program_name = self.rng.choice(["jit", "gc", "malloc", "threads"])
        self.preload = f"{self.build}/lib/libtest_sampler.so"

    def look_at(self, pid):
        time.sleep(1)

    def run(self):
        said = super().run()
        for name in ("recorded", "alone"):
            found = re.search(r"sampler: (\d+) by CPU time, (\d+) by the clock", self.text(f"{name}.err"))
            if not found or not int(found[1]) or not int(found[2]):
                raise Failure(f"{name}: the other profiler saw nothing: {self.text(name + '.err')[-300:]}")
        return said


KINDS = {"gdb": Gdb, "strace": Strace, "createdump": CreateDump, "perf": Perf, "profiler": Profiler}
