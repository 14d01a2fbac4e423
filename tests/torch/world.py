# SPDX-License-Identifier: Apache-2.0
"""Ranks as forked processes of the test, which have torch and weft already: a world takes a tenth of a second."""

import contextlib
import datetime
import multiprocessing
import os
import sys
import tempfile
import threading
import traceback

import torch
import torch.distributed as dist

import weft  # noqa: F401, registers the back end

torch.set_num_threads(1)
_context = multiprocessing.get_context("fork")


def run(ranks, work, timeout=20.0, backend="weft", limit=60):
    """work(rank, ranks) in each of them, in a default group; AssertionError with what those that failed have printed."""
    with tempfile.TemporaryDirectory() as folder:
        return _run(ranks, work, timeout, backend, limit, folder)


def _run(ranks, work, timeout, backend, limit, folder):
    processes = [
        _context.Process(target=_rank, args=(work, rank, ranks, timeout, backend, folder)) for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(limit)
    late = [rank for rank, process in enumerate(processes) if process.is_alive()]
    for process in processes:
        process.kill()
        process.join()
    failed = [f"rank {rank} has not ended within {limit} s" for rank in late]
    for rank, process in enumerate(processes):
        with contextlib.suppress(FileNotFoundError), open(f"{folder}/failed{rank}") as file:
            failed.append(f"rank {rank}:\n{file.read()}")
            continue
        if process.exitcode != 0 and rank not in late and process.exitcode != -9:
            failed.append(f"rank {rank} ended with {process.exitcode}")
    if failed:
        raise AssertionError("\n".join(failed))


def _rank(work, rank, ranks, timeout, backend, folder):
    try:
        store = dist.FileStore(f"{folder}/store", ranks)
        if backend:
            dist.init_process_group(
                backend, store=store, rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=timeout)
            )
        work(rank, ranks)
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        with open(f"{folder}/failed{rank}", "w") as file:
            traceback.print_exc(file=file)
            file.write(f"threads: {[thread.name for thread in threading.enumerate()]}\n")
        sys.stdout.flush()
        os._exit(1)


def backend_of(group):
    """What weft has made: since torch 2 a group holds a back end for each kind of device."""
    return group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group


def await_rank(other, rank):
    """Keeps this rank, and its end of all connections, until `other` has come here, too."""
    store = dist.distributed_c10d._get_default_store()
    if rank == other:
        store.set("come", "1")
    store.wait(["come"], datetime.timedelta(seconds=60))


def equal(got, wanted):
    """Of tensors or numbers, exactly."""
    wanted = torch.as_tensor(wanted, dtype=got.dtype) if isinstance(got, torch.Tensor) else wanted
    same = torch.equal(got, wanted.expand_as(got)) if isinstance(got, torch.Tensor) else got == wanted
    if not same:
        raise AssertionError(f"got {got}, wanted {wanted}")


@contextlib.contextmanager
def raises(kind, *words):
    """The block raises it, and its sentence has these words."""
    try:
        yield
    except kind as error:
        for word in words:
            if word not in str(error):
                raise AssertionError(f"'{word}' is not in: {error}") from error
        return
    raise AssertionError(f"no {kind.__name__}")
