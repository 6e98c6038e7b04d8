import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from fluss.errors import ClosedError
from fluss.net.engine_thread import engine

PATIENCE_S = 30


async def identity(value):
    return value


async def failing():
    raise ValueError("on purpose")


async def forever(cancelled=None):
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        if cancelled is not None:
            cancelled.set()
        raise


def test_a_thread_gets_the_result_of_its_work():
    assert engine().run(identity(7)) == 7


def test_a_thread_gets_the_error_of_its_work():
    with pytest.raises(ValueError, match="on purpose"):
        engine().run(failing())


def test_work_runs_on_one_thread_that_is_not_the_callers():
    async def thread_name():
        return threading.current_thread().name

    names = {engine().run(thread_name()) for _ in range(3)}
    assert names == {"fluss-engine"}


def test_the_engine_thread_refuses_to_wait_for_itself():
    async def wait_for_itself():
        return engine().run(identity(1))

    with pytest.raises(AssertionError, match="must not wait for itself"):
        engine().run(wait_for_itself())


async def test_a_plain_call_works_inside_a_running_loop():
    assert engine().run(identity(7)) == 7


async def test_an_awaited_call_gets_results_and_errors():
    assert await engine().submit(identity(7)) == 7
    with pytest.raises(ValueError, match="on purpose"):
        await engine().submit(failing())


async def test_submitted_work_starts_without_being_awaited():
    started = threading.Event()

    async def start():
        started.set()

    ignored = engine().submit(start())
    assert started.wait(5)
    await ignored


def test_submitting_without_a_loop_is_refused():
    with pytest.raises(RuntimeError, match="no running event loop"):
        engine().submit(identity(1))


async def test_ten_thousand_awaited_calls_come_back():
    results = await asyncio.gather(*(engine().submit(identity(i)) for i in range(10_000)))
    assert results == list(range(10_000))


async def test_cancelling_the_caller_cancels_the_work():
    cancelled = threading.Event()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(engine().submit(forever(cancelled)), 0.05)
    assert cancelled.wait(5)


def test_one_engine_serves_several_loops_one_after_the_other():
    async def once():
        return await engine().submit(identity(7))

    results = []
    for _ in range(3):
        loop = asyncio.new_event_loop()
        results.append(loop.run_until_complete(once()))
        loop.close()
    assert results == [7, 7, 7]


def test_an_answer_for_a_closed_loop_is_dropped_quietly():
    async def leave_behind():
        engine().submit(asyncio.sleep(0.05))

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave_behind())
    loop.close()
    time.sleep(0.1)
    assert engine().run(identity(1)) == 1


def test_an_awaited_call_works_in_trio():
    import trio

    async def main():
        with trio.move_on_after(0.05):
            await engine().submit(forever(cancelled))
        return await engine().submit(identity(7))

    cancelled = threading.Event()
    assert trio.run(main) == 7
    assert cancelled.wait(5)


def test_a_forked_child_gets_an_engine_of_its_own():
    program = """
        import os
        from fluss.net.engine_thread import engine
        from fluss.errors import ClosedError

        async def identity(value):
            return value

        parents = engine()
        parents.run(identity(1))
        child = os.fork()
        if child == 0:
            try:
                parents.run(identity(1))
            except ClosedError as error:
                os._exit(0 if "forked" in str(error) and engine().run(identity(7)) == 7 else 1)
            os._exit(2)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run_program(program).returncode == 0


def test_ctrl_c_ends_a_blocking_call_and_leaves_the_engine_usable():
    program = """
        import asyncio
        from fluss.net.engine_thread import engine

        async def forever():
            print("waiting", flush=True)
            await asyncio.sleep(3600)

        async def identity(value):
            return value

        try:
            engine().run(forever())
        except KeyboardInterrupt:
            print("interrupted", engine().run(identity(7)), flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE_S)  # and not an hour
    assert output == "interrupted 7\n"
    assert process.returncode == 0


def test_the_end_of_the_process_waits_for_exit_hooks():
    program = """
        import asyncio
        from fluss.net.engine_thread import engine

        async def deliver(wait_s):
            assert wait_s == 30
            await asyncio.sleep(0.1)
            print("delivered", flush=True)

        engine().at_exit(deliver)
    """
    result = run_program(program)
    assert (result.returncode, result.stdout) == (0, "delivered\n")


def test_a_stopped_engine_says_why():
    from fluss.net.engine_thread import Engine

    stopped = Engine()
    stopped.stop()
    with pytest.raises(ClosedError, match="process is ending"):
        stopped.run(identity(1))
    with pytest.raises(ClosedError, match="process is ending"):
        stopped.post(list)
    stopped.post_cleanup(list)  # a cleanup does not need the error


def run_program(program):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=30, check=False, env=os.environ,
    )  # fmt: skip
