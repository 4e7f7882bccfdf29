#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""collector.py DIR PLAN...: plays the server that profiles are pushed to, on a port of its own, which
it writes into DIR/port; by TLS if there is a DIR/key.pem. Requests are answered as PLAN says, one word for each, the last one for all
that follow:
  200         taken
  page        200, with a web page
  partial     200, with an OTLP response that rejects one profile
  evil        500, with a text that a terminal would obey
  evilpartial as partial, with such a text
  CODE        that status, with the body "no: CODE"
  CODE:WHEN   and with Retry-After: WHEN
  hang        no answer at all
  cut         half an answer, then the connection is closed
Request N is in DIR/N.head (the request line, the headers, a line with the time) and DIR/N.body."""
import os
import sys
import threading
import time

import local_server

directory, plan = sys.argv[1], sys.argv[2:]
EVIL = "\x1b]0;owned\a\u009b31m\u202e\u2066\u2028\r\n\x7f".encode() + b"\x9b2J"
lock, count = threading.Lock(), 0


class Handler(local_server.Handler):
    def keep(self):
        global count
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lock:
            number, count = count, count + 1
        with open(f"{directory}/{number}.body", "wb") as file:
            file.write(body)
        with open(f"{directory}/{number}.new", "w") as file:
            file.write(f"{self.requestline}\n{self.headers}time {time.monotonic()}\n")
        os.rename(f"{directory}/{number}.new", f"{directory}/{number}.head")
        return plan[min(number, len(plan) - 1)]

    def do_POST(self):
        what = self.keep()
        if what == "hang":
            time.sleep(60)
            return
        if what == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.close_connection = True
            return
        code, _, when = what.partition(":")
        body = f"no: {code}\n".encode() if code not in ("200", "partial") else b""
        if what == "partial":  # partial_success { rejected_profiles: 1 error_message: "too old" }
            code, body = "200", b"\x0a\x0b\x08\x01\x12\x07too old"
        if what == "evilpartial":
            code, message = "200", EVIL
            partial = b"\x08\x01\x12" + bytes([len(message)]) + message
            body = b"\x0a" + bytes([len(partial)]) + partial
        if what == "evil":
            code, body = "500", EVIL
        headers = {"Retry_After": when} if when else {}
        if what == "page":
            code, body, headers = "200", b"<html>Log in</html>", {"Content_Type": "text/html; charset=utf-8"}
        self.send(body, int(code), **headers)


local_server.serve(directory, Handler)
