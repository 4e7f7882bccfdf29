# SPDX-License-Identifier: MIT
# Runs clrsnap on a terminal of its own and presses Ctrl-C. Usage: terminal.py CLRSNAP FAKE
#
# The first Ctrl-C reaches the program and must not end the recording; the second must end the recording, but not the
# program. A terminal that is closed ends the program, also if the command is its session's leader, which alone is told.
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

# ---- The terminal is closed ----
program = f'''trap "echo HUP >>hung; kill \\$recorded; exit 9" HUP
  "{fake}" until-stopped & recorded=$!
  echo ready
  while :; do wait $recorded; done'''
pid, terminal = pty.fork()
if pid == 0:
    os.execv(clrsnap, [clrsnap, "record", "-o", "hung.html", "--", "bash", "-c", program])
output = b""
read_until(b"ready")
read_until(b"clrsnap: recording ")
os.close(terminal)
until = time.monotonic() + 120
ended = 0
while ended == 0 and time.monotonic() < until:
    time.sleep(0.02)
    ended, status = os.waitpid(pid, os.WNOHANG)
assert ended == pid, "the command runs on after its terminal was closed"
assert os.waitstatus_to_exitcode(status) == 9, status
assert open("hung").read() == "HUP\n", "the program was told more than once"
assert os.path.getsize("hung.html") > 10000
