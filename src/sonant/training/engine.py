"""Devices, precision and ranks: everything that differs between a laptop and a cluster, so that the loop does not.

Accelerate finds the device and the other ranks and wraps the model for them; under `torchrun` nothing else is needed.
Losses arrive divided by the counts of the whole step, and ranks average their gradients, hence the factor `world`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from sonant.base.errors import ConfigError
from sonant.base.memory import keep_freed_memory
from sonant.checkpoints.tensors import load_weights
from sonant.objectives.loss import Mean
from sonant.training.config import TrainerConfig
from sonant.training.learner import Learner
from sonant.training.optimizers import Optimizer
from sonant.training.shares import whole

T = TypeVar("T")


class Engine:
    """One of these per process; made before the model, because it decides threads and devices."""

    def __init__(self, config: TrainerConfig, *, cpu: bool = False) -> None:
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState
        from accelerate.utils import DistributedDataParallelKwargs

        if not torch.distributed.is_initialized():  # what an earlier training of this process left behind
            AcceleratorState._reset_state(reset_partial_state=True)

        # Finding unused parameters keeps gradient buckets in one order from the first step: with three ranks or more
        # a resumed run is not bit-identical without it. Layer drop needs it as well.
        ddp = DistributedDataParallelKwargs(find_unused_parameters=True)
        precision = {"fp32": "no"}.get(config.precision, config.precision)
        self.config = config
        # Left to itself it takes ranks without GPUs for so many separate trainings.
        is_cpu = cpu or (int(os.environ.get("WORLD_SIZE", "1")) > 1 and not torch.cuda.is_available())
        self.accelerator = Accelerator(mixed_precision=precision, cpu=is_cpu, kwargs_handlers=[ddp])
        self.device: torch.device = self.accelerator.device
        self.rank: int = self.accelerator.process_index
        self.world: int = self.accelerator.num_processes
        self._learner: nn.Module | None = None
        if config.precision == "fp16" and self.device.type == "cpu":
            self.close()
            problem = "fp16 on a processor is some hundred times slower than fp32."
            raise ConfigError("precision", problem, "Choose bf16 or fp32.")
        if self.device.type == "cpu":
            local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
            keep_freed_memory()
            asked = config.threads or int(os.environ.get("OMP_NUM_THREADS", "0"))
            torch.set_num_threads(asked or max(1, len(os.sched_getaffinity(0)) // local))
        self._make_deterministic()

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    @property
    def scaler(self) -> Any:
        """The loss scaler of fp16, or None."""
        return self.accelerator.scaler

    def prepare(self, learner: Learner) -> None:
        """Places model and objective on the device, and spreads them over the ranks."""
        learner.to(self.device)
        if self.config.compile:
            learner.model.compile()
        if self.config.sharded:
            _shard(learner.model, self.device)
            self._learner = learner
        elif self.world > 1:
            self._learner = self.accelerator.prepare_model(learner)
        else:
            self._learner = learner

    def learn(
        self, batch: Any, own: Mapping[str, float], counts: Mapping[str, float], step: int, *, is_last: bool
    ) -> tuple[Tensor, Mapping[str, Mean]]:
        """Forward and backward of one batch; gradients meet those of the other ranks with the last of a step."""
        assert self._learner is not None
        with self._meeting(is_last):
            with self.autocast():
                loss, figures = self._learner(batch.to(self.device, non_blocking=True), own, counts, step)
            scaled = loss * float(self.world)
            (self.scaler.scale(scaled) if self.scaler else scaled).backward()
        return loss.detach(), figures

    def autocast(self) -> AbstractContextManager[Any]:
        if self.config.precision == "fp32":
            return nullcontext()
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[self.config.precision]
        return torch.autocast(self.device.type, dtype)

    def gradient_norm(self, optimizer: Optimizer) -> Tensor:
        """The norm of all gradients, the same on every rank; not finite if any of them is not."""
        if self.scaler:
            for member in optimizer.members:
                self.scaler.unscale_(member)
        return self.norm_of(optimizer.names)

    def norm_of(self, parameters: Iterable[nn.Parameter]) -> Tensor:
        """The norm of what these parameters have as gradients at the moment, the same on every rank."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        return whole(torch.nn.utils.get_total_norm(gradients))

    def clip(self, optimizer: Optimizer, norm: Tensor) -> None:
        if self.config.max_gradient_norm:
            torch.nn.utils.clip_grads_with_norm_(list(optimizer.names), self.config.max_gradient_norm, norm)

    def update(self, optimizer: Optimizer, *, is_finite: bool) -> None:
        """The step of every optimizer, or none of them; the scaler learns either way."""
        for member in optimizer.members if is_finite else ():
            self.scaler.step(member) if self.scaler else member.step()
        if self.scaler:
            self.scaler.update()

    def weights(self, model: nn.Module) -> dict[str, Tensor]:
        """All weights and buffers on the processor, whole, by name; called on all ranks."""
        return {name: whole(tensor).cpu() for name, tensor in model.state_dict().items()}

    @contextmanager
    def measurable(self, model: nn.Module) -> Iterator[None]:
        """Every rank holds all weights inside, so that a validation may give one of them more to do than another."""
        shards: list[Any] = [module for module in model.modules() if hasattr(module, "unshard")]
        for module in shards:
            module.set_reshard_after_forward(False, recurse=False)
            module.unshard()
        try:
            yield
        finally:
            for module in shards:
                module.reshard()
                module.set_reshard_after_forward(module is not model, recurse=False)

    def load_weights(self, model: nn.Module, weights: Mapping[str, Tensor]) -> None:
        """Puts whole weights back, each rank keeping its share."""
        if not self.config.sharded:
            load_weights(model, weights, "state")
            return
        from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

        set_model_state_dict(model, dict(weights), options=StateDictOptions(full_state_dict=True))

    def sum_over_ranks(self, values: Mapping[str, float]) -> dict[str, float]:
        """Sums by name; every rank gives the same names."""
        if self.world == 1:
            return dict(values)
        names = sorted(values)
        sums = torch.tensor([values[name] for name in names], dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(sums)
        return dict(zip(names, sums.tolist(), strict=True))

    def gather(self, value: T) -> list[T]:
        """The value of every rank, by rank."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        torch.distributed.all_gather_object(values, value)
        return values

    def on_main(self, work: Callable[[], T]) -> T:
        """Done by the first rank while the others wait; all get the result, or the error."""
        if self.world == 1:
            return work()
        made: list[Any] = [None, None]
        if self.is_main:
            try:
                made[0] = work()
            except Exception as error:
                made[1] = error
        torch.distributed.broadcast_object_list(made, src=0)
        if made[1] is not None:
            raise made[1]
        result: T = made[0]
        return result

    def one_after_the_other(self, work: Callable[[], T]) -> T:
        """Done by the first rank, then by all others, who find what it left on the disk."""
        made: list[T] = []
        self.on_main(lambda: made.append(work()))
        return made[0] if made else work()

    @property
    def is_sharded(self) -> bool:
        """Whether no rank has all weights, so that all must use the model together."""
        return self.config.sharded

    def close(self) -> None:
        """Lets go of the other ranks, so that another training may follow with other settings."""
        from accelerate.state import AcceleratorState

        if self.world > 1 and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        AcceleratorState._reset_state(reset_partial_state=True)

    @contextmanager
    def _meeting(self, is_last: bool) -> Iterator[None]:
        """Gradients of the batches before the last stay where they are."""
        learner = self._learner
        if self.world == 1 or is_last:
            if self.config.sharded:
                learner.model.set_requires_gradient_sync(True)  # type: ignore[union-attr, operator]
            yield
        elif self.config.sharded:
            learner.model.set_requires_gradient_sync(False)  # type: ignore[union-attr, operator]
            yield
        else:
            with learner.no_sync():  # type: ignore[union-attr, operator]
                yield

    def _make_deterministic(self) -> None:
        if self.device.type != "cpu" and not self.config.deterministic:
            return
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        # Processors have a deterministic form of everything here; a GPU names those that it lacks.
        torch.use_deterministic_algorithms(True, warn_only=self.device.type != "cpu")
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # costs time, and nothing reads it


def _shard(model: nn.Module, device: torch.device) -> None:
    """FSDP2: every layer of every stack of layers by itself, the rest together; so do those that are looked into, whose
    weights others use without calling them."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    if world == 1:
        problem = "sharded weights need several ranks."
        raise ConfigError("sharded", problem, "Start with: torchrun --nproc-per-node N -m sonant.cli.main -- train …")
    mesh = init_device_mesh(device.type, (world,))
    for module in model.modules():
        if isinstance(module, nn.ModuleList):
            for layer in module:
                if any(True for _ in layer.parameters()) and not getattr(layer, "is_looked_into", False):
                    fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
