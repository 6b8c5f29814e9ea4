"""A certificate authority for tests: certificates for 127.0.0.1 with any common name, as PEM files in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """Paths of a certificate and of its key."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority. Its own certificate is `ca`; `issue` makes those of servers and clients."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        begun = self._begin(self._name, self._key, datetime.now(UTC))
        made = begun.add_extension(x509.BasicConstraints(True, 0), critical=True)
        self.ca = folder / f"{name}.pem"
        self.ca.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def issue(self, common_name: str, file: str = "", *, expired: bool = False) -> Pair:
        """Issue a certificate for localhost and 127.0.0.1, in FILE.pem and FILE.key. Existing files are replaced."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
        begun = self._begin(subject, key, datetime.now(UTC) - (2 * _DAY if expired else 0 * _DAY))
        made = begun.add_extension(names, critical=False).sign(self._key, hashes.SHA256())
        pair = Pair(self._folder / f"{file or common_name}.pem", self._folder / f"{file or common_name}.key")
        pair.cert.write_bytes(made.public_bytes(Encoding.PEM))
        pair.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return pair

    def _begin(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
        )
