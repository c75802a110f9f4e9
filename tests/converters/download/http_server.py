"""An HTTP server on this machine that can serve files in many wrong ways."""

import gzip
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = bytes(range(256)) * 5000


class Handler(BaseHTTPRequestHandler):
    """Handler of `/WAY/NAME`. WAY decides which part of CONTENT is sent, and how."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(self.path)
        _, way, name = self.path.split("/")
        if way == "missing":
            self.send_error(404)
        elif way == "redirect":
            self.send_response(302)
            self.send_header("Location", f"/whole/{name}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif way == "circle":
            self.send_response(302)
            self.send_header("Location", self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif way == "mute":
            self.server.closing.wait(10)
            self.close_connection = True
        else:
            self._send(way)

    def _send(self, way):
        if way == "together":
            self.server.barrier.wait(10)
        self.send_response(200)
        content = CONTENT[::-1] if way == "other" else CONTENT
        if way == "gzip":
            content = gzip.compress(CONTENT)
            self.send_header("Content-Encoding", "gzip")
        if way == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if way in ("whole", "together", "other", "gzip"):
            self.wfile.write(content)
            return
        half = CONTENT[: len(CONTENT) // 2]
        self.wfile.write(b"%x\r\n%s\r\n" % (len(half), half) if way == "chunked" else half)
        self.wfile.flush()
        if way == "silent":
            self.server.closing.wait(10)
        if way == "reset":
            # Closing with unsent data and no time to linger sends a reset instead of an end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        self.close_connection = True

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    """Context manager that serves in a separate thread."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        self.closing = threading.Event()
        self.barrier = threading.Barrier(2)

    def url(self, way, name="model.zip"):
        return f"http://127.0.0.1:{self.server_port}/{way}/{name}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Ignore clients that close the connection, which some tests do on purpose."""
