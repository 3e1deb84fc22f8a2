"""Who is read, and what is written: a socket whose bytes nobody has room for is left alone, and TCP does the rest.

Takes a transport and whether it is to be held; gives what was asked for, to be remembered. Takes an outbox; gives what is in it.
"""

import asyncio


def hold(transport: asyncio.Transport, held: bool) -> bool:
    """Read nothing from it, or go on reading; one that is closing is left as it is. Gives `held`."""
    if not transport.is_closing():
        (transport.pause_reading if held else transport.resume_reading)()
    return held


def drained(outbox: list[bytes]) -> bytes:
    """Take all that is in an outbox, as one piece: one write costs less than many."""
    data = outbox[0] if len(outbox) == 1 else b"".join(outbox)
    outbox.clear()
    return data
