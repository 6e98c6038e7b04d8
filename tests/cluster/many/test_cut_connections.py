"""One writer and one reader of many tables while connections are cut and stalled at random.

The servers are reached through proxies, by `address.map`.
"""

import time
from contextlib import ExitStack, contextmanager
from random import Random

import pytest

import fluss
from tests.cluster.many.model import KEYS, LOGS, SETTINGS, Following, Model, create_tables
from tests.support.scripted.scripted_peer import Proxy

STEPS = 250


@contextmanager
def behind_proxies(cluster, database):
    """A session through proxies, and the proxies."""
    url = f"fluss://{cluster.bootstrap}/{database}"
    with fluss.connect(url) as direct:
        addresses = {f"{each.host}:{each.port}" for each in direct.servers()}
    addresses.add(cluster.bootstrap)
    with ExitStack() as stack:
        proxies = {}
        for address in sorted(addresses):
            host, port = address.rsplit(":", 1)
            proxies[address] = stack.enter_context(Proxy(host, int(port)))
        ends = ",".join(f"{a}={each.host}:{each.port}" for a, each in proxies.items())
        session = stack.enter_context(fluss.connect(url, config={**SETTINGS, "address.map": ends}))
        yield session, list(proxies.values())


@pytest.mark.slow  # hundreds of steps, and connections that are cut between them
@pytest.mark.parametrize("seed", range(3))
def test_a_random_schedule_loses_repeats_and_reorders_nothing(cluster, database, seed):
    random = Random(seed)
    with behind_proxies(cluster, database) as (session, proxies):
        create_tables(session)
        with Following(session) as following:
            with session.write_many([*LOGS, *KEYS]) as writer:
                model = Model(random, writer)
                for _ in range(STEPS):
                    model.step()
                    match random.randint(0, 30):
                        case 0:
                            random.choice(proxies).cut()
                        case 1:
                            stalled = random.choice(proxies)
                            stalled.stall()
                            time.sleep(0.02)
                            stalled.flow()
                        case 2 | 3:
                            model.flush()
                        case 4:
                            following.take()
                        case 5:
                            following.reopen()
                writer.flush()
            model.check(session)
            following.check(model)
