# SPDX-License-Identifier: MIT
"""The command or the program is killed at random moments between the attach and the report: nothing stays, the other
process continues to work, and the next recording works as well."""
import glob
import os
import re
import subprocess
import time

from trial import PATIENCE, Failure, Trial

KILLS = 6  # in one trial


class Kill(Trial):
    program_name = "busy"

    def __init__(self, *args):
        super().__init__(*args)
        self.end_file = f"{self.work}/end"
        self.outputs = f"{self.work}/outputs"
        os.makedirs(self.outputs, exist_ok=True)
        self.before = self.names()

    @staticmethod
    def names():
        """What could stay in file systems outside of the outputs' folder."""
        return set(glob.glob("/dev/shm/*clrsnap*") + glob.glob("/tmp/.clrsnap*") + glob.glob("/tmp/clrsnap-*"))

    def record(self, name, pid, *options):
        return self.start(name, [self.clrsnap, "record", *self.options("attach"), *options,
                                 "-o", f"{self.outputs}/stacks.clrsnap", "-o", f"{self.outputs}/stacks.txt", str(pid)])

    def whole(self, process):
        """A recording that nobody disturbs: it works. How long it took, from the start to the end of the command."""
        for seconds in ("0.2", "2", "10"):  # a short one may be without a sample
            begun = time.monotonic()
            code = self.finish(self.record("command", process.pid, "-d", seconds), "the command")
            if code == 0 or not re.search("^clrsnap: nothing was sampled: ", self.text("command.err"), re.M):
                break
        if code != 0:
            raise Failure(f"a recording after a kill ended with {code}: {self.text('command.err').strip()}")
        self.check_summary(self.text("command.err"), least=0)
        self.wait_until_clean(process)
        self.recordings += 1
        return time.monotonic() - begun

    def check_outputs(self):
        """A recording file may end anywhere, and is read all the same; of any other output there is all or nothing."""
        for name in os.listdir(self.outputs):
            if name not in ("stacks.clrsnap", "stacks.txt"):
                raise Failure(f"a file stays beside the outputs: {name}")
        path = f"{self.outputs}/stacks.clrsnap"
        if os.path.exists(path) and os.path.getsize(path) > 0:
            done = subprocess.run([self.clrsnap, "report", "--format", "text", "-o", "-", path], capture_output=True,
                                  text=True, timeout=300, check=False)
            if done.returncode not in (0, 1) or (done.returncode == 1 and "clrsnap: " not in done.stderr):
                raise Failure(f"the file of a killed recording: report ended with {done.returncode}")
        late = time.monotonic() + PATIENCE
        while self.names() - self.before:  # a command of another test may have such a file for a moment
            if time.monotonic() > late:
                raise Failure(f"files stay: {' '.join(self.names() - self.before)}")
            time.sleep(0.1)

    def empty_outputs(self):
        for name in os.listdir(self.outputs):
            os.remove(f"{self.outputs}/{name}")


class KillCommand(Kill):
    def __init__(self, *args):
        super().__init__(*args)
        self.how = "attach"

    def attached(self):
        process = self.start("recorded", self.program(f"@{self.end_file}"))
        try:
            self.wait_until_ready(process)
            pid = process.pid
            took = max(self.whole(process), self.whole(process))  # the first one gives the program larger stacks
            fds = len(os.listdir(f"/proc/{pid}/fd"))
            for _ in range(KILLS):
                self.empty_outputs()
                victim = self.record("killed", pid, "-d", "0.2")
                time.sleep(self.rng.random() * took)
                self.end(victim)
                self.wait_until_clean(process)
                self.check_outputs()
            self.whole(process)
            more = len(os.listdir(f"/proc/{pid}/fd")) - fds
            if more >= KILLS:
                raise Failure(f"after {KILLS} kills the program has {more} descriptors more")
        except BaseException:
            self.end(process)
            raise
        with open(self.end_file, "w", encoding="utf-8"):
            pass
        return self.finish(process, "the recorded program")


class KillTarget(Kill):
    """The command has to say so, and keep what there was."""

    def run(self):
        begun = time.monotonic()
        killed = [self.launch_and_kill() if self.rng.random() < 0.5 else self.attach_and_kill() for _ in range(KILLS)]
        return f"{KILLS} programs killed, {sum(killed)} recordings kept, {time.monotonic() - begun:.0f} s"

    def attach_and_kill(self):
        process = self.start("recorded", self.program(f"@{self.end_file}"))
        try:
            self.wait_until_ready(process)
            self.empty_outputs()
            recorder = self.record("command", process.pid)
            time.sleep(self.rng.random())
        finally:
            self.end(process)
        return self.conclude(self.finish(recorder, "the command"), self.text("command.err"), (0, 1))

    def launch_and_kill(self):
        self.empty_outputs()
        process = self.start("recorded", [self.clrsnap, "record", *self.options("launch"), "-o",
                                          f"{self.outputs}/stacks.clrsnap", "-o", f"{self.outputs}/stacks.txt", "--",
                                          *self.program(f"@{self.end_file}")])
        time.sleep(self.rng.random() * 1.5)
        for pid in self.children(process.pid):
            os.kill(pid, 9)
        return self.conclude(self.finish(process, "the command"), self.text("recorded.err"), (137,))

    @staticmethod
    def children(parent):
        for _ in range(1000):
            found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False).stdout
            if found:
                return [int(pid) for pid in found.split()]
            time.sleep(0.01)
        raise Failure("the command starts no program")

    def conclude(self, code, said, codes):
        """True: something was kept."""
        if code not in codes:
            raise Failure(f"the program was killed, and the command ended with {code}")
        if "samples in" not in said:
            if not any(line.startswith("clrsnap: ") for line in said.splitlines()):
                raise Failure(f"the program was killed, and the command said nothing of it: {said}")
            self.check_outputs()
            return False
        if "the program was killed" not in said:
            raise Failure(f"nothing is said of the program's end: {said}")
        if "samples per second of CPU time" in said or "of CPU time; one is due" in said:
            raise Failure("a rate is shown whose time is not known")
        if not os.path.exists(f"{self.outputs}/stacks.txt"):
            raise Failure("what was recorded is not kept")
        self.check_outputs()
        return True


KINDS = {"kill-command": KillCommand, "kill-target": KillTarget}
