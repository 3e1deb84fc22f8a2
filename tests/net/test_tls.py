"""TLS contexts: what is wrong with a file is told with its name."""

import ssl

import pytest

from chaosproxy.net.tls import server_context, upstream_context


def complaint(make, *args, **kwargs):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        make(*args, **kwargs)
    return str(caught.value)


def test_good_files(certificates):
    """Right files make contexts that check what they should."""
    c = certificates
    assert server_context(c.cert, c.key, None).verify_mode is ssl.CERT_NONE
    assert server_context(c.cert, c.key, c.ca).verify_mode is ssl.CERT_REQUIRED
    context = upstream_context(c.ca, c.client_cert, c.client_key, insecure=False)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    context = upstream_context(None, None, None, insecure=True)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_key_in_the_same_file(certificates, tmp_path):
    """Certificate and key may stand in one file."""
    both = tmp_path / "both.pem"
    both.write_bytes(certificates.key.read_bytes() + certificates.cert.read_bytes())
    assert server_context(both, both, None).cert_store_stats()["x509"] == 0
    assert upstream_context(None, both, None, insecure=True).check_hostname is False


def test_missing_file(certificates, tmp_path):
    """The one that is missing is named."""
    gone = tmp_path / "gone.pem"
    expected = f"{gone}: no such file or directory"
    assert complaint(server_context, gone, certificates.key, None) == expected
    assert complaint(server_context, certificates.cert, gone, None) == expected
    assert complaint(server_context, certificates.cert, certificates.key, gone) == expected
    assert complaint(upstream_context, gone, None, None, insecure=False) == expected


def test_wrong_file(certificates, tmp_path):
    """A file that holds something else is named."""
    text = tmp_path / "text.pem"
    text.write_text("hello")
    said = complaint(server_context, text, text, None)
    assert said == f"{text}: no certificate and key in PEM form"
    said = complaint(server_context, certificates.cert, text, None)
    assert said == f"{certificates.cert} and {text}: no certificate and key in PEM form"
    said = complaint(upstream_context, text, None, None, insecure=False)
    assert said.startswith(f"{text}: no certificate in PEM form (")


def test_key_of_another(certificates):
    """A key that belongs to another certificate is named with it."""
    c = certificates
    said = complaint(server_context, c.cert, c.client_key, None)
    assert said == f"{c.client_key}: this key does not belong to {c.cert}"


def test_encrypted_key(certificates, tmp_path):
    """A key with a password is refused; nobody is asked on the terminal."""
    from cryptography.hazmat.primitives import serialization as s

    key = s.load_pem_private_key(certificates.key.read_bytes(), None)
    path = tmp_path / "encrypted.pem"
    how = s.BestAvailableEncryption(b"secret")
    path.write_bytes(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, how))
    said = complaint(server_context, certificates.cert, path, None)
    assert said == f"{path}: the key is encrypted; give one without a password"
