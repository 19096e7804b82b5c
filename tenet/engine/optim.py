"""Optimisers, and the learning rate as a function of the step alone, so that a resumed run needs no more."""

import math
from collections.abc import Iterable

import torch
from torch import nn

from tenet.errors import ConfigError
from tenet.recipe import OptimConfig

BACKBONE = "encoder.backbone."


def build_optimizer(model: nn.Module, plan: OptimConfig) -> torch.optim.Optimizer:
    """SGD or AdamW over what learns. Vectors (biases, norms) are not decayed; the backbone has a rate of
    its own (`encoder_lr`), as the group's `share`."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            share = plan.encoder_lr if name.startswith(BACKBONE) else 1.0
            decay = plan.weight_decay if parameter.ndim > 1 else 0.0
            groups.setdefault((share, decay), []).append(parameter)
    if not groups:
        raise ConfigError(
            "train: expected parameters that learn, but this model has none; it needs no training"
        )
    settings = [
        {"params": parameters, "weight_decay": decay, "share": share}
        for (share, decay), parameters in groups.items()
    ]
    if plan.optimizer == "sgd":
        return torch.optim.SGD(settings, lr=plan.lr, momentum=plan.momentum)
    return torch.optim.AdamW(settings, lr=plan.lr)


def learning_rate(plan: OptimConfig, step: int) -> float:
    """The rate of step `step`, from 0: warm-up times schedule."""
    if plan.schedule == "step":
        factor = plan.gamma ** sum(step >= mark for mark in plan.steps)
    elif plan.schedule == "cosine":
        factor = 0.5 * (1 + math.cos(math.pi * min(1.0, step / plan.iterations)))
    else:
        factor = 1.0
    if step < plan.warmup:
        factor *= plan.warmup_start + (1 - plan.warmup_start) * step / plan.warmup
    return plan.lr * factor


def set_rates(optimizer: torch.optim.Optimizer, plan: OptimConfig, step: int) -> float:
    """Give every group its rate for this step; returns that of the heads."""
    rate = learning_rate(plan, step)
    for group in optimizer.param_groups:
        group["lr"] = rate * group["share"]
    return rate


def clip_gradients(parameters: Iterable[nn.Parameter], most: float) -> float:
    """The gradient's norm, which is then cut to `most`; 0 only measures."""
    return float(nn.utils.clip_grad_norm_(parameters, most or math.inf))
