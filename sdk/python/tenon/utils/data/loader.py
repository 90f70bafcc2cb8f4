"""DataLoader: batches of a dataset."""

from __future__ import annotations

import itertools
import queue
import weakref
from typing import Any, Callable, Generic, Iterator, TypeVar

import tenon
from tenon.utils.data.collation import default_collate, default_convert
from tenon.utils.data.datasets import Dataset, IterableDataset
from tenon.utils.data.samplers import BatchSampler, EndlessSampler, RandomSampler, SequentialSampler
from tenon.utils.data.workers import End, Pool, Raised, Settings

T_co = TypeVar("T_co", covariant=True)


class _Fetching:
    """Makes the function that turns sample numbers into a batch; a worker process receives it."""

    def __init__(self, collate: Callable[[Any], Any], batched: bool, drop_last: bool) -> None:
        self._collate, self._batched, self._drop_last = collate, batched, drop_last

    def __call__(self, dataset: Any) -> Callable[[Any], Any]:
        if isinstance(dataset, IterableDataset):
            samples = iter(dataset)
            return lambda numbers: self._next_of(samples, numbers)
        return lambda numbers: self._numbered(dataset, numbers)

    def _numbered(self, dataset: Any, numbers: Any) -> Any:
        if not self._batched:
            return self._collate(dataset[numbers])
        many = getattr(dataset, "__getitems__", None)
        return self._collate(many(numbers) if many else [dataset[each] for each in numbers])

    def _next_of(self, samples: Iterator[Any], numbers: Any) -> Any:
        """Raises StopIteration at the end of the samples."""
        if not self._batched:
            return self._collate(next(samples))
        found = list(itertools.islice(samples, len(numbers)))
        if not found or self._drop_last and len(found) < len(numbers):
            raise StopIteration
        return self._collate(found)


class DataLoader(Generic[T_co]):
    """Iterates over the batches of a dataset.

    Args:
        dataset: a Dataset, an IterableDataset, or anything with __getitem__ and __len__.
        batch_size: the number of samples in a batch. None gives single samples.
        shuffle: takes the samples in another random order in each epoch.
        sampler: the sample numbers in their order. batch_sampler: lists of them.
        num_workers: how many workers make batches while the program runs; 0 makes each batch when it is asked for.
        collate_fn: makes a batch of a list of samples; default_collate if None.
        drop_last: leaves out a last batch that is not full.
        timeout: the longest time, in seconds, to wait for a batch of the workers; 0 waits without limit.
        worker_init_fn: called with the number of the worker when a worker starts.
        multiprocessing_context: None makes workers threads, which work with every dataset and copy nothing. "spawn" or
            "forkserver" makes them processes: for datasets that spend most of their time in Python code, or that use
            global random generators. Their dataset is pickled. "fork" is refused: a forked process cannot use Tenon.
        generator: the generator of the random order and of the workers' seeds.
        prefetch_factor: how many batches each worker makes in advance; 2 if None.
        persistent_workers: keeps the workers after an epoch.
        pin_memory, pin_memory_device: accepted as in PyTorch, without effect.
        in_order: False gives batches of workers as they become ready.

    Errors: an exception of a worker is raised where the batch is asked for, with the worker's traceback in its text.
    RuntimeError if a process of a worker dies, or after `timeout`.

        loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, num_workers=2)
        for inputs, targets in loader:
            ...
    """

    def __init__(self, dataset: Dataset[T_co], batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None,
                 num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None, generator: Any = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self._endless = isinstance(dataset, IterableDataset)
        _check_order(self._endless, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sized: Any = dataset
            sampler = EndlessSampler() if self._endless else RandomSampler(sized, generator=generator) if shuffle else SequentialSampler(sized)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.sampler, self.batch_sampler, self.drop_last = dataset, batch_size, sampler, batch_sampler, drop_last
        self.num_workers, self.timeout, self.worker_init_fn, self.generator = num_workers, timeout, worker_init_fn, generator
        self.multiprocessing_context, self.persistent_workers, self.in_order = multiprocessing_context, persistent_workers, in_order
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers > 0 else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.collate_fn: Callable[[Any], Any] = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._pool: Pool | None = None  # persistent workers

    def __len__(self) -> int:
        if not self._endless:
            return len(self._order)
        size = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    @property
    def _order(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def _fetching(self) -> _Fetching:
        return _Fetching(self.collate_fn, self.batch_sampler is not None, self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        seed = int(tenon.randint(0, 2**62, (), generator=self.generator))  # drawn also without workers, for the same order
        if self.num_workers == 0:
            return self._batches()
        pool = self._pool or self._new_pool()
        if self.persistent_workers:
            if self._pool is None:
                weakref.finalize(self, pool.close)
            self._pool = pool
        return _Batches(self, iter(self._order), pool, seed)

    def _batches(self) -> Iterator[Any]:
        fetch = self._fetching(self.dataset)
        for numbers in self._order:
            try:
                batch = fetch(numbers)
            except StopIteration:
                return
            yield batch

    def _new_pool(self) -> Pool:
        context: Any = self.multiprocessing_context
        if isinstance(context, str):
            import multiprocessing
            context = multiprocessing.get_context(context)
        return Pool([Settings(i, self.num_workers, self.dataset, self._fetching, self.worker_init_fn, "thread" if context is None else "process")
                     for i in range(self.num_workers)], context)


class _Batches:
    """Iterates over the batches that workers make."""

    def __init__(self, loader: DataLoader[Any], order: Iterator[Any], pool: Pool, seed: int) -> None:
        self._loader, self._order, self._pool = loader, order, pool
        self._close = None if loader.persistent_workers else weakref.finalize(self, pool.close)
        self._workers = list(range(loader.num_workers))  # those that have samples, the next one first
        self._asked: dict[int, int] = {}  # the worker of each batch that has not been returned
        self._ready: dict[int, Any] = {}
        self._count = 0
        pool.begin(seed)
        self._epoch = pool.epoch
        self._ask()

    def __iter__(self) -> _Batches:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def _ask(self) -> None:
        """Lets workers make batches, until enough are being made."""
        while self._workers and len(self._asked) < self._loader.num_workers * (self._loader.prefetch_factor or 1):
            try:
                numbers = next(self._order)
            except StopIteration:
                self._workers = []
                return
            worker = self._workers.pop(0)
            self._workers.append(worker)
            self._asked[self._count] = worker
            self._pool.ask(worker, self._count, numbers)
            self._count += 1

    def _received(self) -> tuple[int, Any]:
        """Waits for the next batch. Returns its number and the batch, End or Raised."""
        while True:
            wanted = next(iter(self._asked if self._loader.in_order else self._ready), None)
            if wanted in self._ready:
                return wanted, self._ready.pop(wanted)
            try:
                epoch, index, batch = self._pool.results.get(timeout=self._loader.timeout or None)
            except queue.Empty:
                raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds") from None
            if epoch == self._epoch:
                self._ready[index] = batch

    def __next__(self) -> Any:
        if self._epoch != self._pool.epoch:
            raise RuntimeError("Another loop over this DataLoader has taken its persistent workers.")
        while self._asked:
            try:
                index, batch = self._received()
            except BaseException:  # Ctrl-C, for example
                self._end()
                raise
            worker = self._asked.pop(index)
            if isinstance(batch, End) and worker in self._workers:
                self._workers.remove(worker)
            self._ask()
            if isinstance(batch, Raised):
                batch.reraise()
            if not isinstance(batch, End):
                return batch
        self._end()
        raise StopIteration

    def _end(self) -> None:
        if self._close is not None:
            self._close()


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool, context: Any) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, otherwise set "
                         "prefetch_factor to None.")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if num_workers == 0 and persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if num_workers == 0 and context is not None:
        raise ValueError(f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers={num_workers}")
    name = context if isinstance(context, (str, type(None))) else context.get_start_method()
    if name not in (None, "spawn", "forkserver"):
        raise ValueError(f"multiprocessing_context is '{name}', but a forked process cannot use Tenon. Use 'spawn' or 'forkserver', or None for threads.")


def _check_order(endless: bool, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
    if endless and shuffle not in (False, None):
        raise ValueError(f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}")
    if endless and (sampler is not None or batch_sampler is not None):
        name, given = ("sampler", sampler) if sampler is not None else ("batch_sampler", batch_sampler)
        raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}")
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
