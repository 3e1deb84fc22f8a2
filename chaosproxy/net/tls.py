"""TLS on either side: contexts from the files users name, and messages when a file is wrong.

Takes paths to PEM files; gives `ssl.SSLContext`s, or ValueError naming the file and what is wrong with it.
"""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Never


def server_context(certificate: Path, key: Path, ca: Path | None) -> ssl.SSLContext:
    """Give the context for clients. With `ca` they must show a certificate signed by it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load_pair(context, certificate, key)
    if ca is not None:
        _load_ca(context, ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def upstream_context(
    ca: Path | None, certificate: Path | None, key: Path | None, *, insecure: bool
) -> ssl.SSLContext:
    """Give the context for the server behind the proxy.

    Without `ca` the system's authorities are trusted; `insecure` takes any certificate of any name.
    """
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    if ca is not None:
        _load_ca(context, ca)
    if certificate is not None:
        _load_pair(context, certificate, key or certificate)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def tell_failures(
    context: ssl.SSLContext, tell: Callable[[str], None], left: Callable[[], None]
) -> None:
    """Have it told, as OpenSSL does, why no TLS came about with a client: loops close such a connection without a word.

    `left`: it went before that was known, or took too long. Called when the loop has let go of it, from wherever garbage is collected.
    """

    class Told(ssl.SSLObject):
        _settled = False

        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLError as error:
                self._settled = True
                tell(why(error))
                raise
            self._settled = True

        def __del__(self) -> None:
            # Of a connection that ends loops say nothing to OpenSSL.
            if not self._settled:
                left()

    context.sslobject_class = Told


def why(error: ssl.SSLError) -> str:
    """Why TLS came to nothing, in OpenSSL's words."""
    return str(getattr(error, "verify_message", "") or error.reason or error)


def _load_pair(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    for path in (certificate, key):
        _readable(path)
    try:
        # Without the callback OpenSSL would ask for a password on the terminal.
        context.load_cert_chain(certificate, key, password=_no_password)
    except _EncryptedKeyError:
        raise ValueError(f"{key}: the key is encrypted; give one without a password") from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ValueError(f"{key}: this key does not belong to {certificate}") from None
        both = str(certificate) if key == certificate else f"{certificate} and {key}"
        why = f" ({error.reason})" if error.reason else ""
        raise ValueError(f"{both}: no certificate and key in PEM form{why}") from None


def _load_ca(context: ssl.SSLContext, ca: Path) -> None:
    _readable(ca)
    try:
        context.load_verify_locations(ca)
    except ssl.SSLError as error:
        why = f" ({error.reason})" if error.reason else ""
        raise ValueError(f"{ca}: no certificate in PEM form{why}") from None


def _readable(path: Path) -> None:
    """Find out which file cannot be read: OpenSSL's error does not say."""
    try:
        path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {(error.strerror or str(error)).lower()}") from None


class _EncryptedKeyError(Exception):
    pass


def _no_password() -> Never:
    raise _EncryptedKeyError
