"""What a setting is for, by its name."""

from __future__ import annotations

import re

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
    "dropout": r"(?!drop_(last|duplicates|na)\b)(.*_)?drop(out)?(_.*)?|drop_path|stochastic_depth|p_drop",
    "the loss": r"(label_)?smoothing|label_smoothing.*|class_weights?|pos_weight|temperature|margin|focal_.*|alpha|"
    r"lambda.*|.*_lambda|.*_weight|.*_coef(f|ficient)?|(entropy|value|vf|ent|kl|aux).*(coef|weight|scale)|reduction|ignore_index",
    "early stopping": r"patience|min_delta|early_stop.*",
    "accumulation": r"(gradient_)?accum(ulation)?(_steps)?|grad_accum.*",
    "clipping": r"(.*_)?clip(_.*)?|max_norm|max_grad_norm",
    "an average": r"ema(_.*)?|.*_ema|swa.*|polyak|tau|target_update.*",
    "the batch": r"(per_device_)?(train_)?batch_?size|bs|train_batch_size|micro_batch.*|group_size|num_generations",
    "the length of the training": r"(num_)?(train_)?epochs?|n_epochs|max_(steps|iters)|"
    r"num_(steps|iterations|updates)|total_steps|iterations|episodes",
    "the rows": r"max_(seq_)?len(gth)?|seq_len(gth)?|block_size|context_length|shuffle|"
    r"(doc_|window_)?stride|window",
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
