"""The exact texts of the errors that Redis and Valkey give, by their code.

Takes a code and what the upstream is; gives one raw error reply. Texts are as the servers send them (Redis 6.2 to 8.2, Valkey
9); clients compare them, so not a letter may differ.
"""

from typing import Final

from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.resp import encode_error

_SNAPSHOTS: Final = (
    "MISCONF {product} is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that "
    "may modify the data set are disabled, because this instance is configured to report errors during writes if RDB "
    "snapshotting fails (stop-writes-on-bgsave-error option). Please check the {product} logs for details about the RDB "
    "error."
)
_NOSCRIPT: Final = "NOSCRIPT No matching script. Please use EVAL."
#: Code -> text. `{product}` is Redis or Valkey, `{slot}` the hash slot of the command's first key.
TEXTS: Final[dict[str, str]] = {
    "READONLY": "READONLY You can't write against a read only replica.",
    "LOADING": "LOADING {product} is loading the dataset in memory",
    "OOM": "OOM command not allowed when used memory > 'maxmemory'.",
    "MASTERDOWN": "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "CLUSTERDOWN": "CLUSTERDOWN The cluster is down",
    "TRYAGAIN": "TRYAGAIN Multiple keys request during rehashing of slot",
    "CROSSSLOT": "CROSSSLOT Keys in request don't hash to the same slot",
    "MOVED": "MOVED {slot} {address}",
    "ASK": "ASK {slot} {address}",
    "NOSCRIPT": _NOSCRIPT,
    "BUSY": "BUSY {product} is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "MISCONF": _SNAPSHOTS,
    "NOREPLICAS": "NOREPLICAS Not enough good replicas to write.",
    "UNBLOCKED": (
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
    ),
    "NOAUTH": "NOAUTH Authentication required.",
    "NOPERM": "NOPERM this user has no permissions to run the '{command}' command",
    "WRONGPASS": "WRONGPASS invalid username-password pair or user is disabled.",
    "WRONGTYPE": "WRONGTYPE Operation against a key holding the wrong kind of value",
    "NOGROUP": "NOGROUP No such key '{key}' or consumer group",
    "NOPROTO": "NOPROTO unsupported protocol version",
    "EXECABORT": "EXECABORT Transaction discarded because of previous errors.",
    "BUSYGROUP": "BUSYGROUP Consumer Group name already exists",
    "MAXCLIENTS": "ERR max number of clients reached",
}


def error_reply(
    code: str,
    server: ServerInfo,
    *,
    command: str = "",
    key: bytes = b"",
    slot: int = 0,
    address: str = ":0",
) -> bytes:
    """The raw error for a code of `TEXTS`, or for any other text as it is (`ERR ` is put before one without a code)."""
    text = TEXTS.get(code)
    if text is None:
        first = code.split(" ", 1)[0]
        return encode_error((code if first.isupper() else f"ERR {code}").encode())
    if code == "NOSCRIPT" and server.product == "Valkey":
        text = "NOSCRIPT No matching script."
    if code == "MISCONF" and server.version < (7,):
        text = text.replace(
            "it's currently unable to persist to disk",
            "it is currently not able to persist on disk",
        )
    name = command.lower()
    shown = key.decode("utf-8", "backslashreplace")
    return encode_error(
        text.format(
            product=server.product, slot=slot, address=address, command=name, key=shown
        ).encode()
    )
