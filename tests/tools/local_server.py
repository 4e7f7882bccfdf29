# SPDX-License-Identifier: MIT
"""What the HTTP servers of the tests share: a port of their own, which serve(DIR, handler) writes into DIR/port, and TLS if
there is a DIR/key.pem."""
import http.server
import os
import ssl


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def send(self, body, status=200, length=None, **headers):
        """`length`: the one that is claimed, if it is not the body's; the connection ends after it."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = length is not None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        pass  # the other side has closed the connection


def serve(directory, handler):
    server = Server(("127.0.0.1", 0), handler)
    if os.path.exists(f"{directory}/key.pem"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{directory}/key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with open(f"{directory}/port.new", "w") as file:
        file.write(f"{server.server_port}\n")
    os.rename(f"{directory}/port.new", f"{directory}/port")
    server.serve_forever()
