"""The guard of the unit tests refuses the network and Java."""

import socket
import subprocess
import threading

import pytest

from fluss_testkit.overlooked_tables import THREAD_NAME


def test_a_socket_of_the_network_is_refused():
    with socket.socket() as opened:
        with pytest.raises(AssertionError, match="belongs to tests/cluster"):
            opened.bind(("127.0.0.1", 0))
        with pytest.raises(AssertionError, match="belongs to tests/cluster"):
            opened.connect(("127.0.0.1", 1))


def test_a_java_is_refused():
    with pytest.raises(AssertionError, match="a unit test started java"):
        subprocess.run(["java", "-version"], check=False)


def test_sockets_within_the_process_are_allowed():
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"x")
        assert other.recv(1) == b"x"


@pytest.mark.parametrize("name", [THREAD_NAME, "another"])
def test_the_thread_of_a_real_server_may_go_on(name):
    refused = []

    def bind():
        with socket.socket() as opened:
            try:
                opened.bind(("127.0.0.1", 0))
            except AssertionError as error:
                refused.append(error)

    thread = threading.Thread(target=bind, name=name)
    thread.start()
    thread.join()
    assert bool(refused) is (name != THREAD_NAME)
