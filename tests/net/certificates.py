"""A certificate authority of the tests' own.

Takes a folder, gives PEM files: the authority's, a server's for 127.0.0.1 and localhost, a client's.
"""

from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Certificates:
    ca: Path
    cert: Path
    key: Path
    client_cert: Path
    client_key: Path
    foreign_ca: Path


def make(folder: Path) -> Certificates:
    """Write them."""
    authority, foreign = trustme.CA(), trustme.CA()
    found = Certificates(
        *(
            folder / f"{name}.pem"
            for name in ("ca", "cert", "key", "client", "client-key", "foreign")
        )
    )
    server = authority.issue_cert("127.0.0.1", "localhost")
    client = authority.issue_cert("client@example.org")
    authority.cert_pem.write_to_path(found.ca)
    foreign.cert_pem.write_to_path(found.foreign_ca)
    for issued, cert, key in (
        (server, found.cert, found.key),
        (client, found.client_cert, found.client_key),
    ):
        issued.cert_chain_pems[0].write_to_path(cert)
        issued.private_key_pem.write_to_path(key)
    return found
