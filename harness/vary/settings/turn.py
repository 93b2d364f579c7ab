"""Turning: another value for a setting, valid and clearly different; and what the value means, by its name."""

from __future__ import annotations

import re
from typing import Any

from harness.vary.settings.find import Setting

OTHER_WORDS = {
    "linear": "constant",
    "cosine": "linear",
    "constant": "linear",
    "polynomial": "linear",
    "mean": "sum",
    "sum": "mean",
    "none": "mean",
    "relu": "gelu",
    "gelu": "relu",
    "silu": "relu",
    "tanh": "relu",
    "adam": "sgd",
    "adamw": "sgd",
    "sgd": "adamw",
    "adamw_torch": "sgd",
    "epoch": "no",
    "steps": "no",
    "no": "epoch",
    "left": "right",
    "right": "left",
    "max": "mean",
    "cls": "mean",
    "zeros": "reflect",
    "min": "max",
    "max_length": "longest",
    "longest": "max_length",
    "lora_only": "none",
    "all": "none",
}
"""Words that libraries take, to another one that they take in the same place."""

FEWER = re.compile(
    r"epochs?|.*epochs|.*steps|iters?|.*iterations|.*_iters|updates|rounds|patience|max_.*|.*length|.*_len"
)
"""Names of numbers of which half costs less than twice as many, and shows as much."""

SHARES = re.compile(
    r"(.*_)?(dropout|p|prob|probability|ratio|fraction|split|test_size|smoothing|label_smoothing|momentum|beta\d?|"
    r"betas|alpha|tau|gamma|ema|ema_decay|decay_rate|rho|threshold|quantile|val_frac|mask_prob|lambda_)"
)
"""Names of numbers that stay within 0 and 1."""

SIDE = re.compile(
    r"(.*_)?(log|logging|print|report|save|display|summary|vis|wandb|tensorboard)(_.*)?(steps|interval|every|freq|frequency|"
    r"epochs|limit|strategy)|verbose|verbosity|(dataloader_)?num_workers|workers|pin_memory|prefetch_factor|persistent_workers|"
    r"disable_tqdm|report_to|(per_device_)?(eval|val|test)_batch_size|batch_size_(eval|val|test)|"
    r"logging_(steps|strategy)|save_(steps|strategy|total_limit)"
)
"""Names of settings that must not matter to the training."""

TRAINS = {
    "learning rate": r"lr|learning_rate|(peak|max|min|base|init|initial)_?lr|lr_.*|eta_min|.*_lr",
    "weight decay": r"(weight_)?decay|wd|l2|l1|weight_decay_.*",
    "the optimizer": r"momentum|betas?|beta_?[12]|nesterov|amsgrad|dampening|optim|optimizer|rho",
    "the schedule": r"warmup.*|num_cycles|lr_scheduler.*|schedul.*|gamma|step_size|milestones|t_max|decay_steps|power",
    "dropout": r"(.*_)?drop(out)?(_.*)?|drop_path|stochastic_depth|p_drop",
    "the loss": r"(label_)?smoothing|label_smoothing.*|class_weights?|pos_weight|temperature|margin|focal_.*|alpha|"
    r"lambda.*|.*_lambda|.*_weight|.*_coef(f|ficient)?|(entropy|value|vf|ent|kl|aux).*(coef|weight|scale)|reduction|ignore_index",
    "early stopping": r"patience|min_delta|early_stop.*",
    "accumulation": r"(gradient_)?accum(ulation)?(_steps)?|grad_accum.*",
    "clipping": r"(.*_)?clip(_.*)?|max_norm|max_grad_norm",
    "an average": r"ema(_.*)?|.*_ema|swa.*|polyak|tau|target_update.*",
    "the batch": r"(per_device_)?(train_)?batch_?size|bs|train_batch_size|micro_batch.*|group_size|num_generations",
    "the length of the training": r"(num_)?(train_)?epochs?|n_epochs|max_(steps|iters)|"
    r"num_(steps|iterations|updates)|total_steps|iterations|episodes",
    "the rows": r"max_(seq_)?len(gth)?|seq_len(gth)?|block_size|context_length|truncat.*|shuffle|drop_last|"
    r"stride|window",
    "random numbers": r"(random_|data_|torch_)?seed(_.*)?|.*_seed",
    "what is trained": r"freeze.*|unfreeze.*|trainable.*|.*_frozen|tie_.*",
    "augmentation": r"augment.*|.*_aug|hflip.*|flip.*|crop.*|jitter.*|mixup.*|cutmix.*|rotation|degrees|noise.*|"
    r"mask_prob.*|mlm_probability",
    "the adapter": r"(lora_)?(r|rank|alpha|dropout)|target_modules|modules_to_save|use_rslora",
    "discounting": r"gamma|gae_lambda|discount|lam|epsilon.*|eps_(start|end|decay)|clip_range|target_kl|replay.*|"
    r"buffer_size",
}
"""What a setting is for, by its name: the training, or the score, must follow from it."""

ELSEWHERE = re.compile(
    r"(?!per_device)(.*_)?(cuda|gpus?|devices?|cpu|amp|autocast|fp16|bf16|tf32|mps|tpu|local_rank|world_size|distributed|ddp|"
    r"deepspeed|fsdp|compile|jit|mixed_precision)(_.*)?"
)
"""Names of settings for another machine, or another way to compute."""


def purpose(name: str) -> str | None:
    """What a setting is for; None where that cannot be told by its own name."""
    lower = name.rpartition(".")[2].lower()
    if SIDE.fullmatch(lower) or ELSEWHERE.fullmatch(lower):
        return None
    return next((what for what, names in TRAINS.items() if re.fullmatch(names, lower)), None)


def is_side(name: str) -> bool:
    """Whether it must not matter to the training."""
    return SIDE.fullmatch(name.rpartition(".")[2].lower()) is not None


def others(setting: Setting) -> list[Any]:
    """Other values to try, the first one first; none where nothing is known that would be valid."""
    value, name = setting.value, setting.own_name.lower()
    if ELSEWHERE.fullmatch(name):
        return []
    if isinstance(value, bool):
        return [not value]
    if setting.choices:
        return [each for each in setting.choices if each != value][:2]
    if isinstance(value, str):
        other = OTHER_WORDS.get(value.lower())
        return [] if other is None else [other]
    if isinstance(value, list | tuple):
        # One of them alone: of weights that are all doubled a mean is the same.
        if all(isinstance(each, int | float) for each in value):
            return [type(value)((_half(value[0]), *value[1:]))]
        return [value[:-1]] if len(value) > 1 and purpose(name) else []
    return _numbers(name, value)


def extremes(setting: Setting) -> list[Any]:
    """Values far from its own, with which a limit is reached, or something begins: none for flags and words.

    A clip limit above all norms does nothing, nor does a schedule that changes after the last epoch.
    """
    value = setting.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    if value == 0:
        return [type(value)(1000)]
    if isinstance(value, float):
        return [value * 1e-4, 1.0 if SHARES.fullmatch(setting.own_name.lower()) and 0 < value < 1 else value * 1e4]
    return [each for each in (1, 0, 10 * value) if each != value][:2]


def _numbers(name: str, value: int | float) -> list[Any]:
    if isinstance(value, float):
        if value == 0:
            return [0.1, 1.0]
        return [value / 2, value / 4] if SHARES.fullmatch(name) and 0 < value <= 1 else [value * 2, value / 2]
    if value == 0:
        return [2] if is_side(name) else [1, 2]
    if value == 1:
        return [2, 3]
    if value < 0:
        return [value * 2]
    return [max(1, value // 2), value * 2] if FEWER.fullmatch(name) else [value * 2, max(1, value // 2)]


def _half(value: float) -> float:
    return value // 2 if isinstance(value, int) and value > 1 else value / 2
