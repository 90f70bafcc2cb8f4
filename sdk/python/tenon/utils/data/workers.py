"""Workers of a loader: threads that make batches while the program trains.

Each worker is a thread. It makes its batches itself, or it passes the work on to a process of its own and waits for the
result. A process that dies closes its end of the connection, so its thread reports it at once.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import queue
import random
import signal
import sys
import threading
import time
import traceback
from typing import Any, Callable

import tenon
from tenon.utils.data.datasets import IterableDataset

_THREADS = "TENON_THREADS"
_PATIENCE = 1.0  # seconds that a closing loader waits for its workers


@dataclasses.dataclass
class WorkerInfo:
    """A worker: its number, the number of workers, its seed, and its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here(threading.local):
    """The worker that the current thread is."""

    info: WorkerInfo | None = None


_here = _Here()
_process_info: WorkerInfo | None = None  # in the process of a worker, for all of its threads


def get_worker_info() -> WorkerInfo | None:
    """Returns the WorkerInfo of the worker that runs this code, or None outside of workers."""
    return _here.info or _process_info


class _KeyErrorText(str):
    """A text that KeyError prints with its line breaks."""

    def __repr__(self) -> str:
        return str(self)


class Raised:
    """An exception of a worker, with the text of its traceback."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind: Any = type(error)
        self.text = f"Caught {self.kind.__name__} in DataLoader {where}.\nOriginal {''.join(traceback.format_exception(type(error), error, error.__traceback__))}"

    def as_text(self, text: str) -> Raised:
        """Makes this a RuntimeError with the given text, which every process can read. Returns self."""
        self.kind, self.text = RuntimeError, text
        return self

    def reraise(self) -> None:
        """Raises an exception of the same class, or RuntimeError if its class takes other arguments than a text."""
        try:
            error = self.kind(_KeyErrorText(self.text) if issubclass(self.kind, KeyError) else self.text)
        except Exception:
            error = RuntimeError(self.text)
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame


class End:
    """The worker has no more samples."""


@dataclasses.dataclass
class Settings:
    """The settings of a worker. make(dataset) returns a function from sample numbers to a batch."""

    id: int
    num_workers: int
    dataset: Any
    make: Callable[[Any], Callable[[Any], Any]]
    init: Callable[[int], Any] | None
    kind: str  # "thread" or "process"


class _Maker:
    """Makes the batches of one worker, in its thread or process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._where = f"worker {settings.kind} {settings.id}"
        self._fetch: Callable[[Any], Any] | None = None
        self._fault: Raised | None = None

    def begin(self, seed: int) -> None:
        """Starts an epoch. An error is the result of each batch."""
        global _process_info
        settings = self._settings
        try:
            if self._fetch is None and self._fault is None:
                info = WorkerInfo(settings.id, settings.num_workers, seed, settings.dataset)
                if settings.kind == "process":
                    _process_info = info
                    _seed_all(seed)
                else:
                    _here.info = info
                if settings.init is not None:
                    settings.init(settings.id)
            self._fetch = settings.make(settings.dataset)
        except BaseException as error:
            self._fault = Raised(error, self._where)

    def batch(self, numbers: Any) -> Any:
        """Returns a batch, End, or Raised."""
        if self._fault is not None or self._fetch is None:
            return self._fault
        try:
            return self._fetch(numbers)
        except StopIteration:
            return End()
        except BaseException as error:
            return Raised(error, self._where)

    def stop(self) -> None:
        """Cannot stop a batch: the thread ends after it."""

    def close(self) -> None:
        """Has nothing to close."""


def _seed_all(seed: int) -> None:
    random.seed(seed)
    tenon.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


def _send(connection: Any, value: Any) -> None:
    from multiprocessing.reduction import ForkingPickler
    connection.send_bytes(ForkingPickler.dumps(value))


class _Process:
    """Passes the work of a _Maker on to a process."""

    def __init__(self, settings: Settings, context: Any) -> None:
        from multiprocessing.reduction import ForkingPickler
        try:
            self._settings: Any = bytes(ForkingPickler.dumps(settings))  # no argument of the process, so that it reports what it cannot read
        except Exception as error:
            raise tenon.InvalidArgument(f"DataLoader: the dataset, collate_fn or worker_init_fn cannot be sent to a process: {error}. Workers that are "
                                        "threads, with multiprocessing_context=None, take any.") from error
        self._where = f"worker {settings.kind} {settings.id}"
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def begin(self, seed: int) -> None:
        """Starts an epoch."""
        try:
            if self._settings is not None:
                self._connection.send_bytes(self._settings)
                self._settings = None
            _send(self._connection, ("begin", seed))
        except OSError:
            return  # the next batch reports it

    def batch(self, numbers: Any) -> Any:
        """Returns a batch, End, or Raised."""
        try:
            _send(self._connection, ("batch", numbers))
            answer = self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            self._process.join(_PATIENCE)
            return Raised(error, self._where).as_text(f"DataLoader worker (pid {self._process.pid}) exited unexpectedly, with the exit code "
                                                      f"{self._process.exitcode}." + self._advice())
        except BaseException as error:  # sample numbers that cannot be sent
            return Raised(error, self._where)
        try:
            return pickle.loads(answer)
        except BaseException as error:
            return Raised(error, self._where)

    def _advice(self) -> str:
        if self._settings is None and self._process.exitcode != 1:
            return ""
        return (" If it printed that an attempt has been made to start a new process before the current process has finished its bootstrapping phase, "
                "put the main program under `if __name__ == '__main__':`.")

    def stop(self) -> None:
        """Ends the process, also in the middle of a batch."""
        self._process.terminate()

    def close(self) -> None:
        """Waits for the end of the process."""
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
        self._connection.close()


def _work(connection: Any) -> None:
    """Answers questions until the other end is closed. Runs in a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C concerns the main process, which ends this one
    os.environ.setdefault(_THREADS, "1")
    maker: Any = None
    while True:
        try:
            question = connection.recv_bytes()
        except (EOFError, OSError):
            return
        if maker is None:
            try:
                maker = _Maker(pickle.loads(question))
            except BaseException as error:
                maker = _Unreadable(error)
            continue
        kind, content = pickle.loads(question)
        if kind == "begin":
            maker.begin(content)
            continue
        answer = maker.batch(content)
        try:
            _send(connection, answer)
        except OSError:
            return
        except BaseException as error:
            failed = Raised(error, "worker process, which could not send its batch")
            _send(connection, failed.as_text(answer.text if isinstance(answer, Raised) else failed.text))


class _Unreadable:
    """Stands for a _Maker whose settings could not be read in the process."""

    def __init__(self, error: BaseException) -> None:
        self._fault = Raised(error, "worker process, which could not read the dataset (classes of an interactive session need workers that are threads)")

    def begin(self, seed: int) -> None:
        """Does nothing."""

    def batch(self, numbers: Any) -> Raised:
        """Returns the error."""
        return self._fault


class Pool:
    """The workers of a loader. `ask` gives a worker the numbers of a batch; `results` has tuples of epoch, number of the
    batch, and the batch, End or Raised."""

    def __init__(self, settings: list[Settings], context: Any) -> None:
        self.results: Any = queue.SimpleQueue()
        self.epoch = 0
        self._tasks: list[Any] = [queue.SimpleQueue() for _ in settings]
        self._closed = threading.Event()
        self._makers: list[Any] = []
        self._threads: list[threading.Thread] = []
        device = None if context is not None else tenon.Device.current()
        try:
            for each in settings:
                self._makers.append(_own(each) if context is None else _Process(each, context))
        except BaseException:
            self.close()
            raise
        for maker, tasks in zip(self._makers, self._tasks):
            self._threads.append(threading.Thread(target=_serve, args=(maker, tasks, self.results, self._closed, device), daemon=True, name="tenon-data"))
            self._threads[-1].start()

    def begin(self, seed: int) -> None:
        """Starts an epoch. Results of earlier epochs are to be ignored."""
        self.epoch += 1
        for i, tasks in enumerate(self._tasks):
            tasks.put((self.epoch, None, seed + i))

    def ask(self, worker: int, index: int, numbers: Any) -> None:
        """Lets a worker make batch `index`."""
        self._tasks[worker].put((self.epoch, index, numbers))

    def close(self) -> None:
        """Ends all workers. A thread in the middle of a batch ends after it."""
        if self._closed.is_set():
            return
        self._closed.set()
        for tasks in self._tasks:
            tasks.put(None)
        for maker in self._makers:
            maker.stop()
        for maker in self._makers[len(self._threads):]:  # those that no thread closes
            maker.close()
        end = time.monotonic() + _PATIENCE
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0, end - time.monotonic()))


def _own(settings: Settings) -> _Maker:
    """Returns a _Maker in this process. Its dataset is a copy if the worker may change it."""
    if settings.init is not None or isinstance(settings.dataset, IterableDataset):
        settings.dataset = copy.copy(settings.dataset)
    return _Maker(settings)


def _serve(maker: Any, tasks: Any, results: Any, closed: threading.Event, device: Any) -> None:
    """Runs in the thread of a worker."""
    try:
        if device is not None:
            tenon.set_device(device)
        while (task := tasks.get()) is not None and not closed.is_set():
            epoch, index, content = task
            if index is None:
                maker.begin(content)
            else:
                results.put((epoch, index, maker.batch(content)))
    finally:
        maker.close()
