"""Run by a test: writes a session until its input is closed; says when it has begun."""

from __future__ import annotations

import sys
import threading
from itertools import count

from harness_core import UserMessage
from harness_core.session import APPEND, FileStore, Session, UserMessageLogged


def main(folder: str) -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    session = Session.create("written", cwd="/there", store=FileStore(folder), durability="never")
    for number in count():
        text = f"{number} {'long ' * (number % 40)}"
        session.append(UserMessageLogged(message=UserMessage(id=str(number), content=text)), APPEND)
        if number == 10:
            print("begun", flush=True)
        if over.is_set() or number == 2_000:
            break
    over.wait()
    session.close()


if __name__ == "__main__":
    main(sys.argv[1])
