"""Connect this terminal with a TCP port, byte by byte: what `telnet` does, where there may be none."""

import os
import selectors
import socket
import sys
import tty


def main(port: int) -> None:
    """Pass bytes both ways until one side ends."""
    tty.setraw(0)
    with socket.create_connection(("127.0.0.1", port)) as line, selectors.DefaultSelector() as ready:
        ready.register(0, selectors.EVENT_READ)
        ready.register(line, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                data = os.read(0, 4096) if key.fd == 0 else line.recv(4096)
                if not data:
                    return
                if key.fd == 0:
                    line.sendall(data)
                else:
                    os.write(1, data)


if __name__ == "__main__":
    main(int(sys.argv[1]))
