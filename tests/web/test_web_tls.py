"""TLS of the cluster's own links: both sides know each other, and replaced files count from the next connection on."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import httpx
import pytest
from served import bearer, get, served, tokens

from support.certificates import Authority, Pair
from unshard.config.listener import LinkSecurity, ListenerConfig
from unshard.errors import ClusterError
from unshard.web.tls import FollowingContext, http_client


def link(authority: Authority, pair: Pair | None = None, **more: object) -> LinkSecurity:
    keys = {"ssl_cert": str(pair.cert), "ssl_key": str(pair.key)} if pair else {}
    return LinkSecurity.model_validate({"ssl_ca": str(authority.ca), **keys, **more})


def status(url: str, security: LinkSecurity) -> httpx.Response:
    with http_client(security, url, seconds=60) as client:
        return client.get("/status")


def test_both_sides_show_certificates_and_names_are_held_to(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path), Authority(tmp_path, "other")
    at, ann, eve = ours.issue("master-1"), ours.issue("ann"), other.issue("ann", "eve")
    config = {"ssl_ca": str(ours.ca), "ssl_cert": str(at.cert), "ssl_key": str(at.key), "cert_allowed_cn": ["ann"]}
    with served(tmp_path, ":0", **config) as server:
        url = f"https://127.0.0.1:{server.port}"
        assert status(url, link(ours, ann)).json()["who"] == "ann"
        for wrong in (link(ours), link(ours, eve), link(ours, at), link(other, ann)):
            with pytest.raises(httpx.TransportError):
                status(url, wrong)
        with pytest.raises(httpx.TransportError, match="cert-allowed-cn"):
            status(url, link(ours, ann, cert_allowed_cn=("master-2",)))
        assert status(url, link(ours, ann, cert_allowed_cn=("master-1",))).status_code == 200
        with pytest.raises(httpx.TransportError):
            get(f"http://127.0.0.1:{server.port}/status")


def test_replaced_files_count_from_the_next_connection_on(tmp_path: Path) -> None:
    ours, next_one = Authority(tmp_path), Authority(tmp_path, "next")
    at, ann = ours.issue("at"), ours.issue("ann")
    config = {"ssl_ca": str(ours.ca), "ssl_cert": str(at.cert), "ssl_key": str(at.key)}
    with served(tmp_path, **config) as server:
        url = f"https://{server.address}"
        with http_client(link(ours, ann), url, seconds=60) as client:
            assert client.get("/status").status_code == 200
            os.replace(next_one.ca, ours.ca)
            next_one.issue("at")
            assert client.get("/status").status_code == 200  # on the connection that it has
        with pytest.raises(httpx.TransportError):
            status(url, link(ours, ann))  # the old client certificate is of nobody's authority now
        next_one.issue("ann")
        assert status(url, link(ours, ann)).status_code == 200
        ours.ca.write_text("no PEM")
        with pytest.raises(ClusterError) as caught:
            http_client(link(ours, ann))
        assert caught.value.code == "CLUSTER-052"


def test_half_written_files_leave_the_last_good_ones_in_force(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    at, ann = ours.issue("at"), ours.issue("ann")
    with served(tmp_path, ssl_cert=str(at.cert), ssl_key=str(at.key)) as server:
        at.key.write_text("half a key")
        assert status(f"https://{server.address}", link(ours, ann)).status_code == 200
        ours.issue("at")
        assert status(f"https://{server.address}", link(ours, ann)).status_code == 200


def test_files_that_may_be_read_again_are_read_again(tmp_path: Path) -> None:
    file, forbidden = tmp_path / "key.pem", False

    def make() -> ssl.SSLContext:
        if forbidden:
            raise PermissionError(13, "Permission denied")
        return ssl.create_default_context()

    file.write_text("a key")
    context = FollowingContext([str(file)], make)
    first, forbidden = context.current(), True
    file.write_text("another one, of root alone")
    assert context.current() is first
    forbidden = False
    file.chmod(0o640)
    assert context.current() is not first


def test_a_certificate_may_stand_for_a_token(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    at, worker, ann = ours.issue("at"), ours.issue("worker-1"), ours.issue("ann")
    callers = tokens(tmp_path, ann="viewer")
    callers.write_text(callers.read_text() + "  - {name: w1, role: worker, certificate: worker-1}\n")
    config = {"ssl_ca": str(ours.ca), "ssl_cert": str(at.cert), "ssl_key": str(at.key), "token_file": str(callers)}
    with served(tmp_path, **config) as server:
        url = f"https://{server.address}"
        with http_client(link(ours, worker), url) as client:
            assert client.post("/beat").status_code == 200
            assert client.get("/status").status_code == 403
        assert status(url, link(ours, ann)).status_code == 401
        assert status(url, link(ours, ann, token="token-ann")).json()["who"] == "ann"
        assert status(url, link(ours, worker, token="wrong")).status_code == 401


def test_pages_of_other_sites_have_no_use_of_a_browser_s_certificate(tmp_path: Path) -> None:
    """A browser shows it with every request, whichever page makes the browser send it. It shows no token of ours."""
    ours = Authority(tmp_path)
    at, ann = ours.issue("at"), ours.issue("ann")
    callers = tokens(tmp_path, oda="operator")
    callers.write_text(callers.read_text() + "  - {name: ann, role: operator, certificate: ann}\n")
    config = {"ssl_ca": str(ours.ca), "ssl_cert": str(at.cert), "ssl_key": str(at.key), "token_file": str(callers)}
    order = {"name": "n", "password": "p"}
    with served(tmp_path, **config) as server, http_client(link(ours, ann), f"https://{server.address}") as client:
        own = f"https://{server.address}"
        beside = {"Origin": own, "Sec-Fetch-Site": "same-site"}
        foreign = ({"Origin": "https://evil.example"}, {"Origin": "null"}, beside)
        for headers in foreign:
            answer = client.post("/tasks/t", json=order, headers=headers)
            assert (answer.status_code, answer.json()["error_code"]) == (403, "CLUSTER-060"), headers
            assert client.delete("/tasks/t", headers=headers).json()["error_code"] == "CLUSTER-060"
            assert client.get("/status", headers=headers).json()["who"] == "ann"
            assert client.post("/tasks/t", json=order, headers={**headers, **bearer("oda")}).status_code == 200
        assert client.post("/tasks/t", json=order, headers={"Origin": own}).status_code == 200
        assert client.post("/tasks/t", json=order).status_code == 200


def test_files_that_do_not_fit_together_are_refused() -> None:
    for wrong in ({"ssl_cert": "c"}, {"cert_allowed_cn": ["a"]}):
        with pytest.raises(ValueError, match="ssl-"):
            LinkSecurity.model_validate(wrong)
    with pytest.raises(ValueError, match="needs ssl-cert"):
        ListenerConfig(ssl_ca="ca")
