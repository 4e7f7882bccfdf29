# SPDX-License-Identifier: MIT
"""Runs one program recorded, and then alone with as many rounds: both must end alike, with the same checksum."""
import os
import random
import re
import shutil
import signal
import subprocess
import time

import hazards

# Seconds beyond those of its rounds after which a program counts as hung.
PATIENCE = int(os.environ.get("TORTURE_PATIENCE", "60"))


class Failure(Exception):
    """What has gone wrong, in a sentence."""


def read(path):
    """A file or a link of /proc; nothing if it has gone meanwhile."""
    try:
        if os.path.islink(path):
            return os.readlink(path)
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def entries(folder):
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except (FileNotFoundError, ProcessLookupError):
        return []


def left_over(pid):
    """Of ours in a process that nobody records: the agent's thread, the shared memory. Nothing if it has ended."""
    found = []
    if any(read(f"{task}/comm").startswith(".clrsnap") for task in entries(f"/proc/{pid}/task")):
        found.append("the agent's thread")
    if "memfd:clrsnap" in read(f"/proc/{pid}/maps"):
        found.append("shared memory")
    if any(re.search("memfd:clrsnap|perf_event", read(fd)) for fd in entries(f"/proc/{pid}/fd")):
        found.append("a descriptor")
    return found


class Trial:
    """A hazard with a seed, which says all that is drawn."""
    program_name = None  # if it is not the hazard's

    def __init__(self, build, material, hazard, seed, seconds, work):
        self.rng = random.Random(f"{hazard}/{seed}")
        self.build, self.hazard, self.seed, self.work = build, hazard, seed, work
        self.seconds = seconds or self.rng.choice([1, 2, 3])
        self.app = f"{material}/apps/Torture/Torture.dll"
        self.clrsnap = f"{build}/bin/clrsnap"
        self.how = "launch" if hazard in hazards.LAUNCHED_ONLY else self.rng.choice(["launch", "attach"])
        self.commands = []  # what was run, for the one who reads a failure
        self.recordings = 0
        self.preload = None
        self.program_name = self.program_name or hazard
        os.makedirs(work, exist_ok=True)

    def environment(self, name):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CORECLR_", "CLRSNAP_", "TORTURE_"))}
        env.update(hazards.HAZARDS[self.program_name], TORTURE_LIB=f"{self.build}/lib", DOTNET_NOLOGO="1",
                   DOTNET_DbgMiniDumpName=f"{self.work}/{name}.dump", DOTNET_gcServer="0")
        if name == "recorded":
            env["TORTURE_PLANT"] = os.environ.get("TORTURE_PLANT", "")
        if self.preload:
            env["LD_PRELOAD"] = self.preload
        return env

    def program(self, length):
        return ["dotnet", self.app, self.program_name, str(self.seed), str(length)]

    def options(self, how):
        return hazards.recording(self.rng, self.hazard, how)

    def start(self, name, command):
        """A program in a session of its own, with its output in files."""
        self.commands.append(" ".join(command))
        out, err = (open(f"{self.work}/{name}.{kind}", "wb") for kind in ("out", "err"))
        with out, err:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                    env=self.environment(name), start_new_session=True)

    def text(self, name):
        try:
            with open(f"{self.work}/{name}", encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def finish(self, process, what, patience=PATIENCE):
        """Its exit code, as a shell would have it."""
        try:
            code = process.wait(self.seconds + patience)
        except subprocess.TimeoutExpired:
            self.look(process.pid)
            raise Failure(f"{what} hangs: see its threads in hang.log") from None
        finally:
            self.end(process)
        return code if code >= 0 else 128 - code

    def end(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def look(self, group):
        """Where the threads of a session that hangs stand."""
        pids = subprocess.run(["pgrep", "-s", str(group)], capture_output=True, text=True, check=False).stdout.split()
        with open(f"{self.work}/hang.log", "w", encoding="utf-8") as log:
            for pid in pids:
                subprocess.run(["grep", "-H", "", f"/proc/{pid}/status", f"/proc/{pid}/cmdline"], stdout=log, check=False)
                if shutil.which("gdb"):
                    subprocess.run(["gdb", "-p", pid, "-batch", "-ex", "thread apply all bt 30"], stdout=log,
                                   stderr=subprocess.STDOUT, check=False, timeout=300)

    def wait_until_clean(self, process):
        """Nothing of ours is left in it, or the program has ended."""
        end = time.monotonic() + PATIENCE
        while found := left_over(process.pid):
            if time.monotonic() > end:
                self.look(process.pid)
                raise Failure(f"after a recording there stays in the program: {', '.join(found)}")
            time.sleep(0.025)

    def wait_until_ready(self, process):
        while "ready" not in self.text("recorded.out") and process.poll() is None:
            time.sleep(0.01)

    # ---- the two ways to record ----
    def launched(self):
        options = self.options("launch")
        process = self.start("recorded", [self.clrsnap, "record", *options, "-o", f"{self.work}/stacks.clrsnap", "--",
                                          *self.program(f"{self.seconds}s")])
        code = self.finish(process, "the recorded program")
        self.check_summary(self.text("recorded.err"))
        return code

    def attached(self):
        """Recorded again and again while it runs: each for a while, some interrupted."""
        process = self.start("recorded", self.program(f"{self.seconds}s"))
        try:
            self.wait_until_ready(process)
            time.sleep(self.rng.random() * 0.3)
            late = time.monotonic() + self.seconds + PATIENCE
            while process.poll() is None and time.monotonic() < late:
                self.attach_once(process)
        except BaseException:
            self.end(process)
            raise
        return self.finish(process, "the recorded program", 0 if process.poll() is None else PATIENCE)

    def attach_once(self, process):
        options = self.options("attach")
        command = [self.clrsnap, "record", *options, "-o", f"{self.work}/stacks.clrsnap", "-d",
                   f"{self.rng.uniform(0.05, 0.8):.2f}", str(process.pid)]
        recorder = self.start("command", command)
        interrupted = self.rng.random() < 0.3
        if interrupted:
            time.sleep(self.rng.random())
            recorder.send_signal(signal.SIGINT)
        code = self.finish(recorder, "the command")
        said = self.text("command.err")
        # A program that hardly runs, a short recording, and one whose agent has no processor: all may be so.
        if code == 0 or code == 1 and re.search("^clrsnap: nothing was sampled: (?!the recording breaks off)", said, re.M):
            self.recordings += 1
            self.check_summary(said, least=0)
        elif not re.search("^clrsnap: " if interrupted else hazards.REFUSALS.get(self.hazard, r"^\b$"), said, re.M):
            # Accepted only because the program has ended.
            if not re.search(r"^clrsnap: .*(ended|begun to record|no process|diagnostics port)", said, re.M) or \
                    not self.ends_soon(process):
                raise Failure(f"the command ended with {code}: {said.strip()}")
        if process.poll() is None:
            self.wait_until_clean(process)

    @staticmethod
    def ends_soon(process):
        """A program whose end the command has seen before we could."""
        try:
            process.wait(5)
            return True
        except subprocess.TimeoutExpired:
            return False

    def check_summary(self, said, least=1):
        found = re.search(r"^clrsnap: (\d+) samples? in", said, re.M)
        if not found or int(found[1]) < least:
            raise Failure("nothing was recorded")

    # ---- and both ends ----
    def result(self, name):
        return [line for line in self.text(f"{name}.out").splitlines() if line.startswith("rounds ")]

    def run(self):
        begun = time.monotonic()
        code = self.launched() if self.how == "launch" else self.attached()
        recorded = self.result("recorded")
        if len(recorded) != 1:
            raise Failure(f"the recorded program ended with {code} and has no result")
        rounds = recorded[0].split()[1]
        right = self.finish(self.start("alone", self.program(rounds)), "the program alone", 10 * PATIENCE)
        alone = self.result("alone")
        if recorded != alone:
            raise Failure(f"the result is '{recorded[0]}', where it is '{''.join(alone)}' alone")
        if code != right:
            raise Failure(f"the recorded program ended with {code}, where it ends with {right} alone")
        self.check_dump()
        what = "recorded from its start" if self.how == "launch" else f"attached to {self.recordings} times"
        return f"{rounds} rounds, {what}, exit code {code}, {time.monotonic() - begun:.0f} s"

    def check_dump(self):
        sizes = [os.path.getsize(p) if os.path.exists(p) else 0
                 for p in (f"{self.work}/{name}.dump" for name in ("recorded", "alone"))]
        if (sizes[0] > 0) != (sizes[1] > 0):
            raise Failure(f"createdump wrote {sizes[0]} bytes, where it writes {sizes[1]} alone")
