"""Worker processes that judge by algebra: warm, reused, and replaced when they have to die.

Python cannot stop a computation from outside its process. So every request has a deadline,
and a worker that misses it dies; as it serves one request at a time, a request that never
ends costs one worker, once, and keeps no slot. Messages are JSON: nothing is pickled.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from multiprocessing.connection import Connection, wait
from typing import Any

SECONDS = 3.0
"""Time that one comparison may take; of the real answers of LLaDA-8B none takes a tenth."""
MEGABYTES = 1024
"""Address space of a worker: parser and algebra need about 400."""
OUT_OF_MEMORY = 3
"""Exit status of a worker that reached its limit on memory."""
_START_SECONDS = 120.0
"""A worker that is not ready by then, on however busy a machine, never will be."""
_MAX_LOST_STARTS = 20
"""So many workers in a row may be killed by others before they are ready."""
_MAX_WORKERS = 8
_GRACE = 0.5

Request = dict[str, str]
Reply = dict[str, Any]
"""What a worker found, or `undecided` with the reason."""


class Judges:
    """A pool of workers. It starts them when they are first needed, and ends with its owner."""

    def __init__(self, workers: int, seconds: float = SECONDS, megabytes: int = MEGABYTES) -> None:
        """Make a pool.

        Args:
            workers: processes that judge side by side.
            seconds: wall clock that one request may take.
            megabytes: address space of a worker.
        """
        self._size = workers
        self._limits = seconds, megabytes
        self._workers: list[_Worker] = []
        self._lost_starts = 0
        self._one_at_a_time = threading.Lock()

    def ask(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the reply to each request, in order; each is bounded in time and memory.

        A request whose worker was killed by others is asked once more.

        Raises:
            RuntimeError: a worker did not start, or met a bug; the message has its traceback.
        """
        with self._one_at_a_time:
            try:
                return self._ask(requests)
            except BaseException:
                # Others are still at tasks of this call; the next call must not get their replies.
                self._end_workers()
                raise

    def _ask(self, requests: Sequence[Request]) -> list[Reply]:
        replies: dict[int, Reply] = {}
        waiting, again = deque(range(len(requests))), set[int]()
        while len(self._workers) < min(self._size, len(requests)):
            self._workers.append(_Worker(*self._limits))
        while len(replies) < len(requests):
            for worker in self._workers:
                if waiting and worker.is_idle:
                    task = waiting.popleft()
                    worker.send(task, requests[task])
            for task, reply in self._collect():
                if "lost" in reply and task not in again:
                    again.add(task)
                    waiting.append(task)
                else:
                    replies[task] = reply
        return [replies[task] for task in range(len(requests))]

    def close(self) -> None:
        """End every worker."""
        with self._one_at_a_time:
            self._end_workers()

    def _end_workers(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    @property
    def pids(self) -> list[int]:
        """The processes that are alive."""
        return [worker.process.pid for worker in self._workers]

    def _collect(self) -> Iterator[tuple[int, Reply]]:
        """Yield each task that has ended, and replace the workers that have with it."""
        busy = [worker for worker in self._workers if not worker.is_idle]
        soonest = min(worker.deadline for worker in busy)
        ready = wait([w.connection for w in busy], max(0.0, soonest - time.monotonic()))
        for worker in busy:
            if worker.connection not in ready and time.monotonic() < worker.deadline:
                continue
            task, reply = worker.receive()
            if worker.is_closed:
                self._replace(worker)
            if task is not None:
                yield task, reply

    def _replace(self, worker: "_Worker") -> None:
        self._lost_starts = 0 if worker.is_ready else self._lost_starts + 1
        if self._lost_starts > _MAX_LOST_STARTS:
            raise RuntimeError(
                f"{self._lost_starts} judges in a row were killed while they started; look for "
                "what kills them, such as a limit on memory, and free what it lacks."
            )
        self._workers[self._workers.index(worker)] = _Worker(*self._limits)


class _Worker:
    """One process, its socket, and what it is doing: starting, a task, or nothing."""

    def __init__(self, seconds: float, megabytes: int) -> None:
        ours, theirs = socket.socketpair()
        self.connection = Connection(ours.detach())
        self._seconds = seconds
        arguments = [str(theirs.fileno()), str(seconds), str(megabytes)]
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dtca_core.evaluation.worker", *arguments],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Threads of numerical libraries would count against the address space.
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        self.is_ready = False
        """Whether it has started."""
        self._task: int | None = None
        self.deadline = time.monotonic() + _START_SECONDS

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a task."""
        return self.is_ready and self._task is None

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self.connection.closed

    def send(self, task: int, request: Request) -> None:
        """Give the worker a task. That it has died meanwhile shows when its reply is read."""
        self._task = task
        # Its own timer ends it first; this one is for a worker that is stopped.
        self.deadline = time.monotonic() + self._seconds + _GRACE
        try:
            self.connection.send_bytes(json.dumps(request).encode())
        except OSError:
            self.deadline = time.monotonic()

    def receive(self) -> tuple[int | None, Reply]:
        """Return the task that has ended, None where the worker was only starting."""
        task, self._task = self._task, None
        try:
            message = self.connection.recv_bytes() if self.connection.poll() else b""
        except (EOFError, OSError):
            message = b""
        if not message:
            return task, self._obituary()
        if not self.is_ready:
            self.is_ready = True
            return None, {}
        reply: Reply = json.loads(message)
        if "bug" in reply:
            raise RuntimeError(f"a judge met a bug:\n{reply['bug']}")
        return task, reply

    def _obituary(self) -> Reply:
        """End the worker and return why it gave no reply."""
        try:
            status = self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            status = -signal.SIGALRM  # it does not even die of its own timer
        self.end()
        if not self.is_ready and status in (*range(256), -signal.SIGALRM):
            raise RuntimeError(
                f"a judge did not start (exit status {status}); run `{sys.executable} -m "
                "dtca_core.evaluation.worker` to see why."
            )
        reasons = {-signal.SIGALRM: "out of time", OUT_OF_MEMORY: "out of memory"}
        if status in reasons:
            return {"undecided": reasons[status]}
        return {"undecided": f"the judge ended with status {status}", "lost": True}

    def end(self) -> None:
        """Kill the process and wait for it, so that nothing is left of it."""
        self.connection.close()
        self.process.kill()
        self.process.wait()


@lru_cache(maxsize=1)
def shared_judges() -> Judges:
    """Return the pool that this process shares; it ends with the process."""
    return Judges(min(os.cpu_count() or 1, _MAX_WORKERS))


# A fork would speak to the workers of its parent, and each would read replies to the other.
os.register_at_fork(after_in_child=shared_judges.cache_clear)
atexit.register(lambda: shared_judges().close())
