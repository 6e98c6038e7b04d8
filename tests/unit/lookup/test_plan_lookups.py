from fluss.lookup.plan_lookups import LookupPlan


def test_a_lone_lookup_leaves_at_once():
    plan = LookupPlan()
    plan.add("way", "a")
    assert plan.next_batch("way") == ["a"]
    assert plan.next_batch("way") == []


def test_lookups_that_come_while_the_way_is_full_leave_together():
    plan = LookupPlan(in_flight_max=1)
    plan.add("way", "a")
    assert plan.next_batch("way") == ["a"]
    for each in "bcd":
        plan.add("way", each)
        assert plan.next_batch("way") == []
    plan.finished("way")
    assert plan.next_batch("way") == ["b", "c", "d"]


def test_a_request_carries_no_more_keys_than_allowed():
    plan = LookupPlan(keys_per_request_max=2, in_flight_max=2)
    plan.add("way", "abcde")
    assert plan.next_batch("way") == ["a", "b"]
    assert plan.next_batch("way") == ["c", "d"]
    assert plan.next_batch("way") == []
    assert plan.waiting == 1
    plan.finished("way")
    assert plan.next_batch("way") == ["e"]


def test_ways_do_not_wait_for_each_other():
    plan = LookupPlan(in_flight_max=1)
    plan.add("one", "a")
    plan.add("other", "b")
    assert plan.next_batch("one") == ["a"]
    assert plan.next_batch("other") == ["b"]


def test_nothing_is_remembered_of_a_way_that_is_done():
    plan = LookupPlan()
    plan.add("way", "a")
    plan.next_batch("way")
    plan.finished("way")
    assert plan.next_batch("way") == []
    assert not plan._ways
