# SPDX-License-Identifier: MIT
# Runs clrsnap on a terminal of its own and presses Ctrl-C. Usage: terminal.py CLRSNAP FAKE
#
# The first Ctrl-C reaches the program and must not end the recording; the second must end the recording, but not the
# program.
import os
import pty
import sys
import time

clrsnap, fake = sys.argv[1:]
program = f'''trap "echo INT >>got" INT
  "{fake}" until-stopped & recorded=$!
  while kill -0 $recorded 2>/dev/null; do wait $recorded; done
  until [ -e page.html ]; do sleep 0.02; done
  exit 9'''

pid, terminal = pty.fork()
if pid == 0:
    os.execv(clrsnap, [clrsnap, "record", "-o", "page.html", "--", "bash", "-c", program])

output = b""


def read_until(text):
    global output
    while text not in output:
        output += os.read(terminal, 4096)


def wait_for_interrupts(count):
    while not os.path.exists("got") or open("got").read().count("INT") < count:
        time.sleep(0.02)


read_until(b"clrsnap: recording ")
os.write(terminal, b"\x03")
wait_for_interrupts(1)
for _ in range(25):
    time.sleep(0.02)
    assert not os.path.exists("page.html"), "the first Ctrl-C has ended the recording"
os.write(terminal, b"\x03")
read_until(b"wrote page.html")
while True:
    try:
        output += os.read(terminal, 4096)
    except OSError:  # the terminal's other side is closed: the command has ended
        break
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert status == 9, f"exit code {status}: {output!r}"
assert os.path.getsize("page.html") > 10000
assert b"samples in" in output
