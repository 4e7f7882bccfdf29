#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""symbol_server.py DIR: plays servers of debug files, on a port of its own, which it writes into DIR/port; by TLS if
there is a DIR/key.pem. The path of each request is a line of DIR/asked, its headers are in DIR/heads. The server at
/WHAT/FILE answers a request with:
  file        FILE, at any path
  debuginfod  FILE, at /buildid/ID/debuginfo
  symstore    FILE, at /_.debug/elf-buildid-sym-ID/_.debug
  gzip        FILE, compressed in transfer
  half        the first half of FILE, with the length of that half
  short       the first half of FILE, with the length of the whole
  endless     zeros without end
  slow        a byte of FILE a second
  hang        nothing
  page        200, with a page that asks for a password
  CODE        that status
  loop        a redirect to itself
  to          a redirect to the URL in FILE, a file"""
import gzip
import os
import re
import sys
import threading
import time

import local_server

directory = sys.argv[1]
PATHS = {"debuginfod": r"buildid/[0-9a-f]+/debuginfo", "symstore": r"_\.debug/elf-buildid-sym-[0-9a-f]{40}/_\.debug"}
lock = threading.Lock()


class Handler(local_server.Handler):
    def drip(self, content, chunk, pause):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for at in range(len(content)) if pause else iter(int, 1):
            self.wfile.write(content[at:at + 1] if pause else chunk)
            time.sleep(pause)

    def do_GET(self):
        with lock:
            with open(f"{directory}/asked", "a") as file:
                file.write(self.path + "\n")
            with open(f"{directory}/heads", "a") as file:
                file.write(f"{self.requestline}\n{self.headers}\n")
        _, what, name, rest = (self.path.partition("?")[0] + "///").split("/", 3)
        content = open(name, "rb").read() if os.path.exists(name) else b""
        if what == "hang":
            time.sleep(300)
        elif what == "slow":
            self.drip(content, b"", 1)
        elif what == "endless":
            self.drip(b"", bytes(1 << 20), 0)
        elif what == "gzip":
            self.send(gzip.compress(content), Content_Encoding="gzip")
        elif what == "half":
            self.send(content[:len(content) // 2])
        elif what == "short":
            self.send(content[:len(content) // 2], length=len(content))
        elif what == "page":
            self.send(b"<html>\x1b]0;owned\a who are you?</html>", Content_Type="text/html")
        elif what.isdigit():
            self.send(b"\x1b[31mno", int(what))
        elif what in ("loop", "to"):
            self.send(b"", 302, Location=self.path if what == "loop" else content.decode().strip())
        elif re.fullmatch(PATHS.get(what, ".*"), rest.rstrip("/")):
            self.send(content)
        else:
            self.send(b"no", 404)


local_server.serve(directory, Handler)
