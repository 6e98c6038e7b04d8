from hypothesis import given, strategies as st

from fluss.write.plan_bucket_choice import choose_sticky

DICE = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 20), DICE, st.data())
def test_the_next_bucket_is_another_one_with_a_leader(count, jitter, data):
    current = data.draw(st.none() | st.integers(0, count - 1))
    led = data.draw(st.sets(st.integers(0, count - 1)))
    chosen = choose_sticky(current, count, led.__contains__, jitter=jitter)
    assert 0 <= chosen < count
    if count > 1:
        assert chosen != current
    if led - {current}:
        assert chosen in led


def test_the_dice_reach_every_bucket():
    found = {choose_sticky(None, 5, lambda _: True, jitter=each / 50) for each in range(50)}
    assert found == set(range(5))
