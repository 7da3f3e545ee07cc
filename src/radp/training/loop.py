"""The one training loop: base, align and head all pass through it.

Everything that happens in step n is a function of (seed, n, rank) and of the state at step n: which samples, which
noise, which dropout masks. So a killed run goes on from its last checkpoint and ends with the very same weights.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from radp.model.memory import keep_freed_memory
from radp.runs.folder import RunFolder
from radp.training.ema import Ema
from radp.training.records import Records
from radp.training.settings import LoopConfig
from radp.training.state import load_state, save_state

Model = TypeVar("Model", bound=nn.Module)


class Task(Protocol[Model]):
    """What is learnt. `model` is trained where its parameters require gradients.

    `memory` holds, as buffers, what the task itself remembers from step to step, and is saved with the weights.
    """

    @property
    def model(self) -> Model: ...

    @property
    def memory(self) -> nn.Module | None: ...

    def batch(self, step: int, rank: int, processes: int) -> Any:
        """This process' share of the samples of a step: a pure function of its arguments. Runs in a thread."""
        ...

    def loss(self, model: Model, batch: Any, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        """The scalar to minimise and what to record beside it."""
        ...

    def validate(self, model: Model, step: int) -> dict[str, float]:
        """Measures on held-out data with the averaged weights; called in the first process only."""
        ...


def step_seed(seed: int, step: int, rank: int) -> int:
    """A seed for one step of one process."""
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0] >> 1)


def shuffled_rows(count: int, batch: int, step: int, seed: int) -> np.ndarray:
    """Rows (batch,) of step `step` when `count` samples are shuffled anew in each epoch and the rest is dropped."""
    per_epoch = count // batch
    if per_epoch == 0:
        raise ValueError(f"{count} samples are fewer than one batch of {batch}")
    epoch, position = divmod(step, per_epoch)
    order = np.random.default_rng([seed, epoch]).permutation(count)
    return order[position * batch : (position + 1) * batch]


def _prefetched(task: Task[Any], first: int, last: int, rank: int, processes: int) -> Iterator[Any]:
    """Batches of steps first..last-1, the next one being built while this one is used."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        ahead = pool.submit(task.batch, first, rank, processes) if first < last else None
        for step in range(first, last):
            assert ahead is not None
            ready = ahead.result()
            ahead = pool.submit(task.batch, step + 1, rank, processes) if step + 1 < last else None
            yield ready


class _Step(nn.Module):
    """Model and loss as one module, so that data-parallel training sees a plain forward pass."""

    def __init__(self, task: Task[Any]) -> None:
        super().__init__()
        self.model, self.task = task.model, task

    def forward(self, batch: Any, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        return self.task.loss(self.model, batch, generator)


def _accelerator() -> Any:
    try:
        from accelerate import Accelerator
        from accelerate.utils import DistributedDataParallelKwargs
    except ImportError:
        raise ModuleNotFoundError('training needs Accelerate: pip install "radp[train]"') from None
    # a batch may hold no agents or no static objects, and then their encoders get no gradient
    return Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])


def is_main_process() -> bool:
    """Whether this process writes the results; the others only train along."""
    from accelerate import PartialState

    return bool(PartialState().is_main_process)


def fit(task: Task[Model], config: LoopConfig, folder: RunFolder, stop_after: int | None = None) -> Model:
    """Train to `config.steps` (or only to `stop_after`), going on from the folder's last checkpoint.

    Returns the model with the averaged weights. Works in one process or under `accelerate launch`.
    """
    keep_freed_memory()
    accelerator = _accelerator()
    rank, processes = accelerator.process_index, accelerator.num_processes
    if config.batch % processes:
        raise ValueError(f"batch {config.batch} cannot be shared by {processes} processes")
    trained = [p for p in task.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.lr, weight_decay=config.weight_decay, fused=True)
    ema = Ema(task.model, config.ema, config.ema_warmup)
    first = load_state(folder, task.model, optimizer, ema, task.memory)
    last = min(config.steps, stop_after or config.steps)
    step_module, optimizer = accelerator.prepare(_Step(task), optimizer)
    records = Records(folder, first, enabled=accelerator.is_main_process)
    clock = time.monotonic()
    try:
        for step, batch in zip(range(first, last), _prefetched(task, first, last, rank, processes)):
            seed = step_seed(config.seed, step, rank)
            torch.manual_seed(seed)  # dropout masks come from the global generator
            for group in optimizer.param_groups:
                group["lr"] = config.lr * config.rate(step)
            step_module.train()
            loss, parts = step_module(batch, torch.Generator().manual_seed(seed))
            accelerator.backward(loss)
            norm = accelerator.clip_grad_norm_(trained, config.clip)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            ema.update(task.model)
            done = step + 1
            if done % config.log_every == 0 or done == last:
                speed = (done - first) / (time.monotonic() - clock)
                values = {"loss": loss.item(), "grad_norm": float(norm), "lr": config.lr * config.rate(step)}
                records.write(done, "train", {**values, "samples_per_s": speed * config.batch, **parts})
                records.progress(done, config.steps, loss.item(), speed)
            if done % config.validate_every == 0 or done == config.steps:
                if accelerator.is_main_process:
                    with ema.applied(task.model) as averaged:
                        averaged.eval()
                        records.write(done, "validation", task.validate(averaged, done))
                accelerator.wait_for_everyone()
            if (done % config.save_every == 0 or done == last) and accelerator.is_main_process:
                save_state(folder, done, task.model, optimizer, ema, task.memory)
    finally:
        records.close()
    accelerator.wait_for_everyone()
    ema.copy_to(task.model)
    task.model.eval()
    return task.model
