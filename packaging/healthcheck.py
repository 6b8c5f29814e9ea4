"""Exit code 0 where a master or worker answers at HOST:PORT, over TLS or not, whoever it lets in: for containers."""

from __future__ import annotations

import http.client
import ssl
import sys

SECONDS = 3.0


def answers(place: str) -> bool:
    """Whether an answer comes that is no failure of the server itself. Certificates are not looked at: it is ours."""
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    for connection in (
        http.client.HTTPConnection(place, timeout=SECONDS),
        http.client.HTTPSConnection(place, timeout=SECONDS, context=trusting),
    ):
        try:
            connection.request("GET", "/metrics")
            return connection.getresponse().status < 500
        except ssl.SSLError as error:
            return "CERTIFICATE_REQUIRED" in str(error)  # it asks for ours
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()
    return False


if __name__ == "__main__":
    sys.exit(not answers(sys.argv[1]))
