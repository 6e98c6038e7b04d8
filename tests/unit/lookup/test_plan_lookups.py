from fluss.lookup.plan_lookups import LookupPlan, LookupSettings


def test_a_lone_lookup_is_sent_immediately():
    plan = LookupPlan()
    plan.add("route", "a")
    assert plan.next_batch("route") == ["a"]
    assert plan.next_batch("route") == []


def test_lookups_that_come_while_the_route_is_full_are_sent_together():
    plan = LookupPlan(LookupSettings(in_flight_max=1))
    plan.add("route", "a")
    assert plan.next_batch("route") == ["a"]
    for each in "bcd":
        plan.add("route", each)
        assert plan.next_batch("route") == []
    plan.finished("route")
    assert plan.next_batch("route") == ["b", "c", "d"]


def test_a_request_carries_no_more_keys_than_allowed():
    plan = LookupPlan(LookupSettings(keys_per_request_max=2, in_flight_max=2))
    plan.add("route", "abcde")
    assert plan.next_batch("route") == ["a", "b"]
    assert plan.next_batch("route") == ["c", "d"]
    assert plan.next_batch("route") == []
    plan.finished("route")
    assert plan.next_batch("route") == ["e"]


def test_routes_do_not_wait_for_each_other():
    plan = LookupPlan(LookupSettings(in_flight_max=1))
    plan.add("one", "a")
    plan.add("other", "b")
    assert plan.next_batch("one") == ["a"]
    assert plan.next_batch("other") == ["b"]


def test_nothing_is_remembered_of_a_route_that_is_done():
    plan = LookupPlan()
    plan.add("route", "a")
    plan.next_batch("route")
    plan.finished("route")
    assert plan.next_batch("route") == []
    assert not plan._routes
