"""Who is read: a socket whose bytes nobody has room for is left alone, and TCP does the rest.

Takes a transport and whether it is to be held; gives what was asked for, to be remembered.
"""

import asyncio


def hold(transport: asyncio.Transport, held: bool) -> bool:
    """Read nothing from it, or go on reading; one that is closing is left as it is. Gives `held`."""
    if not transport.is_closing():
        (transport.pause_reading if held else transport.resume_reading)()
    return held
