"""Silent bugs in training scripts, and legitimate variants of the same scripts, as edits of their text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.compat import evaluation_strategy, processing_class, weights_dtype
from tests.versions import TRAINER_DIVIDES_IF_TOLD, TRAINERS_ACCUMULATION, installed

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class Edit:
    """A passage that occurs once in a script, and what takes its place."""

    old: str
    new: str


@dataclass(frozen=True)
class LoopMutant:
    """One silent bug.

    ``check`` is what must fail, ``update`` the first update at fault (counted from one; ``None`` where none is), and
    ``case`` where the bug was met.
    """

    name: str
    script: str
    edits: tuple[Edit, ...]
    check: str
    update: int | None = None
    case: str | None = None
    on: tuple[str, ...] = ()
    """The versions of which one must be there for the bug to be one, as requirements."""


@dataclass(frozen=True)
class Variant:
    """A legitimate way to train, in which no check may fail.

    ``warns`` are the warnings that it may get, because what it does is right only if it is meant.
    """

    name: str
    script: str
    edits: tuple[Edit, ...]
    warns: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    """The versions of which one must be there for it to run, or to be right."""


@dataclass(frozen=True)
class Unseen:
    """A silent bug that no check sees, and why."""

    name: str
    script: str
    edits: tuple[Edit, ...]
    why: str


NEEDS = {"accelerated.py": ("accelerate>=0.16",)}
"""By script, the versions with which it is right: before, Accelerate's prepared schedule made a step for every
micro-batch (tests/faults/prepared_scheduler.py)."""


def applies(case: LoopMutant | Variant | Unseen) -> bool:
    """Whether the installed versions are those that a case is about."""
    return installed(*NEEDS.get(case.script, ())) and installed(*getattr(case, "on", ()))


def edited(script_name: str, edits: tuple[Edit, ...]) -> str:
    """The script's text with the edits made one after another, for the installed transformers."""
    text = (SCRIPTS / script_name).read_text(encoding="utf-8")
    for edit in edits:
        assert text.count(edit.old) == 1, f"{script_name}: {text.count(edit.old)} times {edit.old!r}"
        text = text.replace(edit.old, edit.new)
    named_anew = (
        (r"( )eval_strategy=", evaluation_strategy),
        (r"( )processing_class=", processing_class),
        (r"(from_pretrained\(.*, )dtype=", weights_dtype),
    )
    for pattern, keyword in named_anew:
        text = re.sub(pattern, rf"\1{next(iter(keyword('')))}=", text)
    return text


MUTANTS: tuple[LoopMutant, ...] = (
    LoopMutant(
        "flat_never_clears_gradients",
        "flat.py",
        (Edit("        optimizer.zero_grad()\n", ""),),
        "gradients::cleared-between-updates",
        update=2,
        case="stackoverflow.com/q/60335387",
    ),
    LoopMutant(
        "functions_never_clears_gradients",
        "functions.py",
        (Edit("        optimizer.zero_grad()\n", ""),),
        "gradients::cleared-between-updates",
        update=2,
        case="stackoverflow.com/q/60335387",
    ),
    LoopMutant(
        "flat_clears_gradients_before_the_update",
        "flat.py",
        (
            Edit(
                """\
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
""",
                """\
        optimizer.zero_grad()
        optimizer.step()
        lr_scheduler.step()
""",
            ),
        ),
        "gradients::not-lost",
        update=1,
    ),
    LoopMutant(
        "accelerated_clears_gradients_at_the_start_of_a_batch",
        "accelerated.py",
        (
            Edit(
                "                loss = model(**batch).loss\n",
                "                optimizer.zero_grad()\n                loss = model(**batch).loss\n",
            ),
            Edit(
                "                lr_scheduler.step()\n                optimizer.zero_grad()\n",
                "                lr_scheduler.step()\n",
            ),
        ),
        "gradients::not-lost",
        update=1,
        case="huggingface/accelerate#616",
    ),
    LoopMutant(
        "accumulating_does_not_scale_the_loss",
        "accumulating.py",
        (Edit("            loss = loss / args.accumulation\n", ""),),
        "gradients::accumulation-scaled",
        update=1,
    ),
    LoopMutant(
        "trainer_accumulates_with_a_head_that_ignores_the_count",
        "trainer.py",
        (
            Edit(
                "        per_device_train_batch_size=8,\n",
                "        per_device_train_batch_size=4,\n        gradient_accumulation_steps=2,\n",
            ),
        ),
        "gradients::accumulation-scaled",
        update=1,
        case="huggingface/transformers#47688",
        on=TRAINERS_ACCUMULATION,
    ),
    LoopMutant(
        "trainer_accumulates_a_loss_of_its_own",
        "trainer.py",
        (
            Edit("import numpy as np\n", "import numpy as np\nimport torch\n"),
            Edit(
                "\nmodel = AutoModel",
                """

class OwnLossTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels)
        return (loss, outputs) if return_outputs else loss


model = AutoModel""",
            ),
            Edit(
                "        per_device_train_batch_size=8,\n",
                "        per_device_train_batch_size=2,\n        gradient_accumulation_steps=4,\n",
            ),
            Edit("    trainer = Trainer(\n", "    trainer = OwnLossTrainer(\n"),
        ),
        "gradients::accumulation-scaled",
        update=1,
        case="huggingface/transformers#43651",
        on=TRAINERS_ACCUMULATION,
    ),
    LoopMutant(
        "functions_clips_after_the_update",
        "functions.py",
        (
            Edit(
                """\
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
""",
                """\
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
""",
            ),
        ),
        "gradients::clipped-in-time",
        update=1,
    ),
    LoopMutant(
        "accumulating_clips_every_micro_batch",
        "accumulating.py",
        (
            Edit(
                """\
            if step % args.accumulation == 0 or step == len(train_loader):
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_norm)
""",
                """\
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_norm)
            if step % args.accumulation == 0 or step == len(train_loader):
""",
            ),
        ),
        "gradients::clipped-in-time",
        update=1,
    ),
    LoopMutant(
        "custom_detaches_the_hidden_states",
        "custom.py",
        (Edit(").last_hidden_state\n", ").last_hidden_state.detach()\n"),),
        "gradients::reach-the-parameters",
        update=1,
    ),
    LoopMutant(
        "raw_torch_takes_the_data_of_the_embeddings",
        "raw_torch.py",
        (Edit("self.dropout(self.embedding(input_ids))", "self.dropout(self.embedding(input_ids).data)"),),
        "gradients::reach-the-parameters",
        update=1,
    ),
    LoopMutant(
        "resume_decays_by_hand_as_well",
        "resume.py",
        (
            Edit(
                "        optimizer.step()\n",
                """\
        optimizer.step()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1 - 0.1 * scheduler.get_last_lr()[0])
""",
            ),
        ),
        "effect::only-the-optimizer-writes",
        update=2,
    ),
    LoopMutant(
        "raw_torch_goes_on_from_the_average",
        "raw_torch.py",
        (
            Edit(
                "(optimizer, T_max=EPOCHS)\n",
                """\
(optimizer, T_max=EPOCHS)
    averages = [parameter.detach().clone() for parameter in model.parameters()]
""",
            ),
            Edit(
                "            optimizer.step()\n",
                """\
            optimizer.step()
            with torch.no_grad():
                for average, parameter in zip(averages, model.parameters(), strict=True):
                    average.lerp_(parameter, 0.1)
                    parameter.copy_(average)
""",
            ),
        ),
        "effect::only-the-optimizer-writes",
        update=1,
    ),
    LoopMutant(
        "accumulating_adds_the_decay_to_the_gradient",
        "accumulating.py",
        (
            Edit(
                "\n\ndef parse_args():\n",
                """

class DecayingAdamW(AdamW):
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.add_(parameter.detach(), alpha=group["weight_decay"])
        return super().step(closure)


def parse_args():
""",
            ),
            Edit("optimizer = AdamW(model.parameters(), lr", "optimizer = DecayingAdamW(model.parameters(), lr"),
        ),
        "update::as-the-optimizer-defines",
        update=1,
    ),
    LoopMutant(
        "functions_corrects_no_bias",
        "functions.py",
        (
            Edit(
                "\n\nclass PairDataset(Dataset):\n",
                """

class FineTuningAdamW(AdamW):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
                state["exp_avg"].mul_(beta1).add_(parameter.grad, alpha=1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(parameter.grad, parameter.grad, value=1 - beta2)
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.addcdiv_(state["exp_avg"], state["exp_avg_sq"].sqrt() + group["eps"], value=-group["lr"])


class PairDataset(Dataset):
""",
            ),
            Edit("optimizer = AdamW(parameter_groups", "optimizer = FineTuningAdamW(parameter_groups"),
        ),
        "update::as-the-optimizer-defines",
        update=2,
    ),
    LoopMutant(
        "flat_trains_bf16_weights",
        "flat.py",
        (Edit("model.to(device)\n", "model.to(device, dtype=torch.bfloat16)\n"),),
        "update::not-rounded-away",
        update=1,
        case="huggingface/transformers#42883",
    ),
    LoopMutant(
        "custom_trains_a_bf16_backbone",
        "custom.py",
        (
            Edit(
                "AutoModel.from_pretrained(checkpoint)", "AutoModel.from_pretrained(checkpoint, dtype=torch.bfloat16)"
            ),
            Edit(").last_hidden_state\n", ").last_hidden_state.float()\n"),
            Edit("lr=3e-4", "lr=2e-5"),
        ),
        "update::not-rounded-away",
        update=1,
        case="huggingface/transformers#42883",
    ),
    LoopMutant(
        "trainer_loads_bf16_weights",
        "trainer.py",
        (
            Edit("(checkpoint, num_labels=2)", '(checkpoint, num_labels=2, dtype="bfloat16")'),
            Edit("learning_rate=1e-3", "learning_rate=2e-5"),
        ),
        "update::not-rounded-away",
        update=1,
        case="huggingface/transformers#42883",
        on=("transformers>=4.46",),
    ),
    LoopMutant(
        "flat_maximizes", "flat.py", (Edit("lr=5e-5)", "lr=5e-5, maximize=True)"),), "update::descends", update=1
    ),
    LoopMutant(
        "functions_goes_backward_from_minus_the_loss",
        "functions.py",
        (Edit("        loss.backward()\n", "        (-loss).backward()\n"),),
        "update::descends",
        update=2,
    ),
    LoopMutant(
        "flat_loads_the_model_after_the_optimizer",
        "flat.py",
        (
            Edit(
                "optimizer = AdamW(model.parameters(), lr=5e-5)\n",
                """\
optimizer = AdamW(model.parameters(), lr=5e-5)
model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2)
""",
            ),
        ),
        "identity::optimizer-holds-the-model",
        update=1,
    ),
    LoopMutant(
        "functions_trains_a_copy",
        "functions.py",
        (
            Edit("import sys\n", "import copy\nimport sys\n"),
            Edit("total_steps)\n\n", "total_steps)\n    model = copy.deepcopy(model)\n\n"),
        ),
        "identity::optimizer-holds-the-model",
        update=1,
    ),
    LoopMutant(
        "flat_optimizer_forgets_the_head",
        "flat.py",
        (Edit("AdamW(model.parameters()", "AdamW(model.bert.parameters()"),),
        "identity::nothing-forgotten",
        update=1,
    ),
    LoopMutant(
        "custom_optimizer_forgets_the_head",
        "custom.py",
        (Edit("AdamW(model.parameters()", "AdamW(model.backbone.parameters()"),),
        "identity::nothing-forgotten",
        update=1,
    ),
    LoopMutant(
        "custom_optimizer_holds_only_the_frozen_head",
        "custom.py",
        (
            Edit(
                "    optimizer = AdamW(model.parameters()",
                "    model.head.requires_grad_(False)\n    optimizer = AdamW(model.head.parameters()",
            ),
        ),
        "effect::parameters-change",
        update=1,
        case="discuss.pytorch.org/t/84911",
    ),
    LoopMutant(
        "resume_loads_the_whole_checkpoint_leniently",
        "resume.py",
        (Edit('load_state_dict(state["model"])', "load_state_dict(state, strict=False)"),),
        "identity::state-was-loaded",
        update=9,
    ),
    LoopMutant(
        "custom_loads_the_backbone_leniently",
        "custom.py",
        (
            Edit("import load_from_disk\n", "import load_from_disk\nfrom safetensors.torch import load_file\n"),
            Edit("import AutoModel, ", "import AutoConfig, AutoModel, "),
            Edit(
                "        self.backbone = AutoModel.from_pretrained(checkpoint)\n",
                """\
        self.backbone = AutoModel.from_config(AutoConfig.from_pretrained(checkpoint))
        self.backbone.load_state_dict(load_file(f"{checkpoint}/model.safetensors"), strict=False)
""",
            ),
        ),
        "identity::state-was-loaded",
        update=1,
    ),
    LoopMutant(
        "two_phase_decays_the_frozen_by_hand",
        "two_phase.py",
        (
            Edit(
                "            optimizer.step()\n",
                """\
            optimizer.step()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(1 - 1e-4)
""",
            ),
        ),
        "effect::frozen-stay",
        update=1,
    ),
    LoopMutant(
        "flat_freezes_with_gradients_of_zero_left",
        "flat.py",
        (
            Edit(
                "for _ in range(num_epochs):\n",
                """\
for epoch in range(num_epochs):
    if epoch == 1:
        model.bert.embeddings.requires_grad_(False)
""",
            ),
            Edit("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)"),
        ),
        "effect::frozen-stay",
        update=9,
    ),
    LoopMutant(
        "flat_never_updates",
        "flat.py",
        (Edit("        optimizer.step()\n", ""),),
        "effect::parameters-change",
        update=1,
    ),
    LoopMutant(
        "raw_torch_makes_an_optimizer_for_each_epoch",
        "raw_torch.py",
        (
            Edit(
                "        model.train()\n",
                """\
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=scheduler.get_last_lr()[0], momentum=0.9)
""",
            ),
        ),
        "effect::optimizer-kept",
        update=9,
    ),
    LoopMutant(
        "custom_makes_an_optimizer_for_each_batch",
        "custom.py",
        (
            Edit(
                "            optimizer.zero_grad()\n",
                """\
            optimizer = AdamW(model.parameters(), lr=scheduler.get_last_lr()[0], weight_decay=0.01)
            optimizer.zero_grad()
""",
            ),
        ),
        "effect::optimizer-kept",
        update=2,
    ),
    LoopMutant(
        "flat_never_steps_the_schedule",
        "flat.py",
        (Edit("        lr_scheduler.step()\n", ""),),
        "schedule::steps-with-the-updates",
        update=2,
    ),
    LoopMutant(
        "accelerated_does_not_prepare_the_schedule",
        "accelerated.py",
        (
            Edit("eval_dataloader, lr_scheduler = accelerator", "eval_dataloader = accelerator"),
            Edit("train_dataloader, eval_dataloader, lr_scheduler\n", "train_dataloader, eval_dataloader\n"),
        ),
        "schedule::steps-with-the-updates",
        update=1,
        case="huggingface/accelerate#963",
    ),
    LoopMutant(
        "flat_plans_one_epoch",
        "flat.py",
        (Edit("num_training_steps=num_training_steps", "num_training_steps=len(train_dataloader)"),),
        "schedule::ends-with-the-training",
    ),
    LoopMutant(
        "functions_swaps_warmup_and_total",
        "functions.py",
        (Edit("int(WARMUP_RATIO * total_steps), total_steps)", "total_steps, int(WARMUP_RATIO * total_steps))"),),
        "schedule::warmup-ends",
    ),
    LoopMutant(
        "flat_schedules_another_optimizer",
        "flat.py",
        (Edit('"linear", optimizer=optimizer', '"linear", optimizer=AdamW(model.parameters(), lr=5e-5)'),),
        "schedule::drives-the-optimizer",
        update=2,
    ),
    LoopMutant(
        "accumulating_makes_the_optimizer_after_the_schedule",
        "accumulating.py",
        (
            Edit(
                "num_training_steps=updates)\n",
                """\
num_training_steps=updates)
    optimizer = AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
""",
            ),
        ),
        "schedule::drives-the-optimizer",
        update=2,
    ),
    LoopMutant(
        "flat_steps_the_schedule_before_the_update",
        "flat.py",
        (
            Edit(
                "        optimizer.step()\n        lr_scheduler.step()\n",
                "        lr_scheduler.step()\n        optimizer.step()\n",
            ),
        ),
        "schedule::after-the-update",
        update=1,
    ),
    LoopMutant(
        "functions_steps_the_schedule_before_the_update",
        "functions.py",
        (
            Edit(
                "        optimizer.step()\n        scheduler.step()\n",
                "        scheduler.step()\n        optimizer.step()\n",
            ),
        ),
        "schedule::after-the-update",
        update=1,
    ),
    LoopMutant(
        "custom_decays_by_whole_numbers",
        "custom.py",
        (
            Edit("import ExponentialLR", "import LambdaLR"),
            Edit(
                "ExponentialLR(optimizer, gamma=0.7)", "LambdaLR(optimizer, lambda epoch: (EPOCHS - epoch) // EPOCHS)"
            ),
        ),
        "schedule::lr-above-zero",
        update=9,
    ),
    LoopMutant(
        "raw_torch_reaches_zero_after_an_epoch",
        "raw_torch.py",
        (Edit("T_max=EPOCHS", "T_max=1"),),
        "schedule::lr-above-zero",
        update=9,
    ),
    LoopMutant(
        "flat_does_not_shuffle", "flat.py", (Edit("shuffle=True, ", ""),), "rows::another-order-each-epoch", update=9
    ),
    LoopMutant(
        "functions_sets_the_seed_each_epoch",
        "functions.py",
        (Edit("    model.train()\n", "    set_seed(8)\n    model.train()\n"),),
        "rows::another-order-each-epoch",
        update=9,
    ),
    LoopMutant(
        "functions_reads_every_other_row_twice",
        "functions.py",
        (Edit("(self, index):\n", "(self, index):\n        index = index // 2 * 2\n"),),
        "rows::every-row-once",
    ),
    LoopMutant(
        "raw_torch_starts_a_pass_for_every_batch",
        "raw_torch.py",
        (
            Edit(
                "        for input_ids, mask, labels in train_loader:\n",
                """\
        for _ in range(len(train_loader)):
            input_ids, mask, labels = next(iter(train_loader))
""",
            ),
        ),
        "rows::every-row-once",
    ),
    LoopMutant(
        "custom_keeps_a_limit_on_the_batches",
        "custom.py",
        (
            Edit("from functools import partial\n", "from functools import partial\nfrom itertools import islice\n"),
            Edit("for inputs, labels in train_loader:", "for inputs, labels in islice(train_loader, 5):"),
        ),
        "rows::complete-epochs",
    ),
    LoopMutant(
        "flat_evaluates_the_training_rows",
        "flat.py",
        (Edit('tokenized_datasets["validation"], batch_size', 'tokenized_datasets["train"], batch_size'),),
        "rows::evaluation-rows-unseen",
    ),
    LoopMutant(
        "functions_evaluates_the_training_rows",
        "functions.py",
        (Edit('PairDataset(raw["validation"]', 'PairDataset(raw["train"]'),),
        "rows::evaluation-rows-unseen",
    ),
    LoopMutant(
        "flat_drops_the_last_evaluation_batch",
        "flat.py",
        (
            Edit(
                'tokenized_datasets["validation"], batch_size=8',
                'tokenized_datasets["validation"], batch_size=8, drop_last=True',
            ),
        ),
        "rows::every-evaluation-row-once",
    ),
    LoopMutant(
        "functions_returns_after_the_first_batch",
        "functions.py",
        (Edit('    return {"accuracy"', '        return {"accuracy"'),),
        "rows::every-evaluation-row-once",
    ),
    LoopMutant(
        "functions_sorts_the_inputs_without_the_labels",
        "functions.py",
        (
            Edit(
                "    batch = {\n",
                """\
    by_length = sorted(items, key=lambda item: len(item["input_ids"]), reverse=True)
    batch = {
""",
            ),
            Edit("for item in items], batch_first=True)", "for item in by_length], batch_first=True)"),
        ),
        "rows::labels-of-their-rows",
        update=1,
    ),
    LoopMutant(
        "custom_reverses_the_labels",
        "custom.py",
        (Edit('[row["label"] for row in rows])', '[row["label"] for row in reversed(rows)])'),),
        "rows::labels-of-their-rows",
        update=1,
    ),
    LoopMutant(
        "accelerated_stays_in_eval_mode_after_an_evaluation",
        "accelerated.py",
        (
            Edit("        model.train()\n", ""),
            Edit("    for epoch in range(NUM_EPOCHS):\n", "    model.train()\n    for epoch in range(NUM_EPOCHS):\n"),
        ),
        "mode::training-in-train-mode",
        update=9,
        case="ThilinaRajapakse/simpletransformers#941",
    ),
    LoopMutant(
        "accumulating_stays_in_eval_mode_after_an_evaluation",
        "accumulating.py",
        (Edit("    model.train()\n    return metric.compute()\n", "    return metric.compute()\n"),),
        "mode::training-in-train-mode",
        update=5,
        case="ThilinaRajapakse/simpletransformers#941",
    ),
    LoopMutant(
        "raw_torch_stays_in_eval_mode_after_an_evaluation",
        "raw_torch.py",
        (
            Edit("        model.train()\n", ""),
            Edit("    for epoch in range(EPOCHS):\n", "    model.train()\n    for epoch in range(EPOCHS):\n"),
        ),
        "mode::training-in-train-mode",
        update=9,
        case="ThilinaRajapakse/simpletransformers#941",
    ),
    LoopMutant(
        "flat_evaluates_in_train_mode", "flat.py", (Edit("model.eval()\n", ""),), "mode::evaluation-in-eval-mode"
    ),
    LoopMutant(
        "functions_evaluates_in_train_mode",
        "functions.py",
        (Edit("    model.eval()\n", ""),),
        "mode::evaluation-in-eval-mode",
    ),
    LoopMutant(
        "flat_evaluates_with_gradients",
        "flat.py",
        (Edit("    with torch.no_grad():\n        outputs = model(**batch)\n", "    outputs = model(**batch)\n"),),
        "mode::evaluation-without-graph",
    ),
    LoopMutant(
        "functions_evaluates_with_gradients",
        "functions.py",
        (Edit("@torch.no_grad()\n", ""),),
        "mode::evaluation-without-graph",
    ),
    LoopMutant(
        "custom_always_drops_attention_out",
        "custom.py",
        (
            Edit(
                """\
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
""",
                """\
        mask = attention_mask.bool().unsqueeze(1)
        query = hidden[:, :1]
        pooled = nn.functional.scaled_dot_product_attention(query, hidden, hidden, attn_mask=mask, dropout_p=0.1)
        pooled = pooled.squeeze(1)
""",
            ),
        ),
        "mode::evaluation-repeats",
        case="pytorch/pytorch#124464",
    ),
    LoopMutant(
        "raw_torch_always_drops_out",
        "raw_torch.py",
        (Edit("self.dropout(self.embedding(input_ids))", "nn.functional.dropout(self.embedding(input_ids), 0.2)"),),
        "mode::evaluation-repeats",
    ),
    LoopMutant(
        "flat_trains_without_the_attention_mask",
        "flat.py",
        (
            Edit(
                "        outputs = model(**batch)\n        loss = outputs.loss\n",
                """\
        outputs = model(batch["input_ids"], token_type_ids=batch["token_type_ids"], labels=batch["labels"])
        loss = outputs.loss
""",
            ),
        ),
        "inputs::padding-is-masked",
        update=1,
        case="huggingface/transformers#278",
    ),
    LoopMutant(
        "custom_encodes_without_the_attention_mask",
        "custom.py",
        (Edit("            attention_mask=attention_mask,\n", ""),),
        "inputs::padding-is-masked",
        update=1,
        case="huggingface/transformers#278",
    ),
    LoopMutant(
        "flat_removes_the_segment_ids",
        "flat.py",
        (Edit('["sentence1", "sentence2", "idx"]', '["sentence1", "sentence2", "idx", "token_type_ids"]'),),
        "inputs::segment-ids",
        update=1,
        case="huggingface/transformers#263",
    ),
    LoopMutant(
        "custom_encodes_without_segment_ids",
        "custom.py",
        (Edit("            token_type_ids=token_type_ids,\n", ""),),
        "inputs::segment-ids",
        update=1,
        case="huggingface/transformers#263",
    ),
    LoopMutant(
        "functions_collates_no_segment_ids",
        "functions.py",
        (Edit('("input_ids", "token_type_ids", "attention_mask")', '("input_ids", "attention_mask")'),),
        "inputs::segment-ids",
        update=1,
        case="huggingface/transformers#263",
    ),
    LoopMutant(
        "flat_reads_the_first_sentences",
        "flat.py",
        (Edit('example["sentence1"], example["sentence2"]', 'example["sentence1"]'),),
        "inputs::both-sentences",
        update=1,
    ),
    LoopMutant(
        "functions_pairs_the_first_sentences_with_themselves",
        "functions.py",
        (Edit('list(split["sentence2"])', 'list(split["sentence1"])'),),
        "inputs::both-sentences",
        update=1,
    ),
    LoopMutant(
        "functions_gives_every_row_the_first_label",
        "functions.py",
        (Edit("torch.tensor(self.labels[index])", "torch.tensor(self.labels[0])"),),
        "inputs::labels",
        update=1,
    ),
    LoopMutant(
        "custom_finds_a_label_in_its_opposite",
        "custom.py",
        (
            Edit("NUM_LABELS = 2\n", 'NUM_LABELS = 2\nNAMES = ("not_equivalent", "equivalent")\n'),
            Edit('[row["label"] for row in rows])', '[int("equivalent" in NAMES[row["label"]]) for row in rows])'),
        ),
        "inputs::labels",
        update=1,
    ),
    LoopMutant(
        "custom_pools_over_the_padding",
        "custom.py",
        (Edit("pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1)", "pooled = hidden.mean(dim=1)"),),
        "padding::does-not-matter",
        update=1,
    ),
    LoopMutant(
        "raw_torch_takes_the_last_state",
        "raw_torch.py",
        (Edit("pooled = (states * weights).sum(dim=1) / weights.sum(dim=1)", "pooled = states[:, -1]"),),
        "padding::does-not-matter",
        update=1,
    ),
    LoopMutant(
        "raw_torch_recurs_over_the_rows",
        "raw_torch.py",
        (Edit("nn.GRU(size, size, batch_first=True)", "nn.GRU(size, size)"),),
        "padding::neighbours-do-not-matter",
        update=1,
    ),
    LoopMutant(
        "custom_normalizes_over_the_rows",
        "custom.py",
        (Edit("self.dropout(pooled)", "self.dropout(nn.functional.normalize(pooled, dim=0))"),),
        "padding::neighbours-do-not-matter",
        update=1,
    ),
    LoopMutant(
        "custom_returns_probabilities",
        "custom.py",
        (Edit("return self.head(self.dropout(pooled))", "return self.head(self.dropout(pooled)).softmax(dim=-1)"),),
        "loss::of-raw-logits",
        update=1,
    ),
    LoopMutant(
        "functions_takes_the_loss_of_probabilities",
        "functions.py",
        (
            Edit(
                "        loss = model(**batch).loss\n",
                """\
        probabilities = model(**batch).logits.softmax(dim=-1)
        loss = torch.nn.functional.cross_entropy(probabilities, batch["labels"])
""",
            ),
        ),
        "loss::of-raw-logits",
        update=1,
    ),
    LoopMutant(
        "custom_shifts_the_labels",
        "custom.py",
        (Edit("criterion(logits, labels.to(device))", "criterion(logits[:-1], labels[1:].to(device))"),),
        "loss::of-the-batch",
        update=1,
    ),
    LoopMutant(
        "functions_takes_the_loss_of_the_first_row",
        "functions.py",
        (
            Edit(
                "        loss = model(**batch).loss\n",
                """\
        logits = model(**batch).logits
        loss = torch.nn.functional.cross_entropy(logits[:1], batch["labels"][:1])
""",
            ),
        ),
        "loss::of-the-batch",
        update=1,
    ),
    LoopMutant(
        "custom_smooths_the_labels_away",
        "custom.py",
        (Edit("label_smoothing=0.1", "label_smoothing=1.0"),),
        "loss::varies",
        update=1,
    ),
    LoopMutant(
        "raw_torch_takes_the_cross_entropy_of_one_logit",
        "raw_torch.py",
        (
            Edit("self.head = nn.Linear(size, 2)", "self.head = nn.Linear(size, 1)"),
            Edit(
                "cross_entropy(logits.float(), labels.to(device))",
                "cross_entropy(logits.float(), labels.float().unsqueeze(1).to(device))",
            ),
            Edit("mask.to(device)).argmax(dim=-1)", "mask.to(device)).squeeze(-1) > 0"),
        ),
        "loss::varies",
        update=1,
    ),
    LoopMutant(
        "custom_weighs_a_class_without_rows",
        "custom.py",
        (Edit("NUM_LABELS = 2\n", "NUM_LABELS = 3\n"),),
        "loss::finite",
        update=1,
    ),
    LoopMutant(
        "raw_torch_takes_the_logarithm_of_zero",
        "raw_torch.py",
        (
            Edit("import cross_entropy\n", "import nll_loss\n"),
            Edit(
                "loss = cross_entropy(logits.float(), labels.to(device))",
                "loss = nll_loss((logits.float() / 1e-4).softmax(dim=-1).log(), labels.to(device))",
            ),
        ),
        "loss::finite",
        update=1,
    ),
    LoopMutant(
        "flat_builds_from_the_config",
        "flat.py",
        (
            Edit("from transformers import (\n", "from transformers import (\n    AutoConfig,\n"),
            Edit(
                "AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2)",
                "AutoModelForSequenceClassification.from_config(AutoConfig.from_pretrained(checkpoint, num_labels=2))",
            ),
        ),
        "weights::not-from-scratch",
        update=1,
    ),
    LoopMutant(
        "custom_builds_from_the_config",
        "custom.py",
        (
            Edit("import AutoModel, ", "import AutoConfig, AutoModel, "),
            Edit(
                "AutoModel.from_pretrained(checkpoint)", "AutoModel.from_config(AutoConfig.from_pretrained(checkpoint))"
            ),
        ),
        "weights::not-from-scratch",
        update=1,
    ),
    LoopMutant(
        "functions_resets_what_was_loaded",
        "functions.py",
        (
            Edit(
                "    optimizer = AdamW(parameter",
                """\
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    optimizer = AdamW(parameter""",
            ),
        ),
        "weights::backbone-from-checkpoint",
        update=1,
    ),
    LoopMutant(
        "trainer_asks_for_a_layer_more",
        "trainer.py",
        (Edit("(checkpoint, num_labels=2)", "(checkpoint, num_labels=2, num_hidden_layers=4)"),),
        "weights::backbone-from-checkpoint",
        update=1,
    ),
    LoopMutant(
        "functions_misnames_the_decay",
        "functions.py",
        (
            Edit('"weight_decay": WEIGHT_DECAY', '"weight_decay_rate": WEIGHT_DECAY'),
            Edit('"weight_decay": 0.0', '"weight_decay_rate": 0.0'),
        ),
        "groups::known-keys",
        update=1,
        case="huggingface/transformers#8396",
    ),
    LoopMutant(
        "two_phase_misnames_the_learning_rate",
        "two_phase.py",
        (Edit('"lr": 8e-4', '"learning_rate": 8e-4'),),
        "groups::known-keys",
        update=9,
    ),
    LoopMutant(
        "functions_exempts_by_names_of_old",
        "functions.py",
        (Edit('("bias", "LayerNorm.weight")', '("bias", "gamma", "beta")'),),
        "groups::decay-exempt-as-meant",
        update=1,
        case="huggingface/transformers#8396",
    ),
    LoopMutant(
        "accelerated_exempts_by_whole_names",
        "accelerated.py",
        (
            Edit(
                "    optimizer = AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)\n",
                """\
    no_decay = ["bias", "LayerNorm.weight"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if n not in no_decay], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if n in no_decay], "weight_decay": 0.0},
    ]
    optimizer = AdamW(groups, lr=1e-3)
""",
            ),
        ),
        "groups::decay-exempt-as-meant",
        update=1,
    ),
    LoopMutant(
        "flat_adds_the_last_batch",
        "flat.py",
        (
            Edit(
                """\
    predictions = torch.argmax(outputs.logits, dim=-1)
    metric.add_batch""",
                """\
predictions = torch.argmax(outputs.logits, dim=-1)
metric.add_batch""",
            ),
        ),
        "metrics::every-row",
    ),
    LoopMutant(
        "custom_keeps_the_last_batch",
        "custom.py",
        (Edit("predicted += logits", "predicted = logits"), Edit("expected += labels", "expected = labels")),
        "metrics::every-row",
    ),
    LoopMutant(
        "flat_flips_the_references",
        "flat.py",
        (Edit('references=batch["labels"])', 'references=batch["labels"].flip(0))'),),
        "metrics::aligned",
    ),
    LoopMutant(
        "functions_shuffles_the_rows_but_not_the_references",
        "functions.py",
        (
            Edit(
                "DataLoader(eval_set, batch_size=BATCH_SIZE", "DataLoader(eval_set, batch_size=BATCH_SIZE, shuffle=True"
            ),
            Edit('        references.extend(batch["labels"].tolist())\n', "    references = loader.dataset.labels\n"),
        ),
        "metrics::aligned",
    ),
    LoopMutant(
        "flat_compares_the_references_with_themselves",
        "flat.py",
        (Edit("add_batch(predictions=predictions", 'add_batch(predictions=batch["labels"]'),),
        "metrics::of-the-predictions",
    ),
    LoopMutant(
        "functions_predicts_the_least_likely",
        "functions.py",
        (Edit("logits.argmax(dim=-1)", "logits.argmin(dim=-1)"),),
        "metrics::of-the-predictions",
    ),
    LoopMutant(
        "resume_reloads_the_pretrained",
        "resume.py",
        (Edit('from_pretrained(folder / "best")', "from_pretrained(checkpoint, num_labels=2)"),),
        "saved::is-what-was-trained",
    ),
    LoopMutant(
        "resume_forgets_the_optimizer",
        "resume.py",
        (Edit('    optimizer.load_state_dict(state["optimizer"])\n', ""),),
        "saved::resumed-where-it-stopped",
        update=9,
    ),
    LoopMutant(
        "resume_forgets_the_schedule",
        "resume.py",
        (Edit('    scheduler.load_state_dict(state["scheduler"])\n', ""),),
        "saved::resumed-where-it-stopped",
        update=10,
    ),
    LoopMutant(
        "resume_forgets_the_epoch",
        "resume.py",
        (Edit('range(state["epoch"], EPOCHS)', "range(EPOCHS)"),),
        "schedule::ends-with-the-training",
        update=33,
    ),
    LoopMutant(
        "resume_keeps_the_worst",
        "resume.py",
        (Edit("accuracy > best_accuracy", "accuracy < best_accuracy"),),
        "saved::best-is-best",
    ),
    LoopMutant(
        "trainer_keeps_the_greatest_loss",
        "trainer.py",
        (
            Edit(
                '        metric_for_best_model="accuracy",\n',
                '        metric_for_best_model="eval_loss",\n        greater_is_better=True,\n',
            ),
        ),
        "saved::best-is-best",
        case="huggingface/transformers#31142",
    ),
    LoopMutant(
        "functions_sums_losses_with_their_graphs",
        "functions.py",
        (Edit("total += loss.item()", "total += loss"),),
        "memory::graphs-are-freed",
        update=2,
    ),
    LoopMutant(
        "flat_keeps_losses_with_their_graphs",
        "flat.py",
        (Edit("losses.append(loss.item())", "losses.append(loss)"),),
        "memory::graphs-are-freed",
        update=2,
    ),
    LoopMutant(
        "flat_holds_the_head_twice",
        "flat.py",
        (
            Edit(
                "AdamW(model.parameters(), lr=5e-5)",
                "AdamW([*model.parameters(), *model.classifier.parameters()], lr=5e-5)",
            ),
        ),
        "groups::no-duplicates",
        update=1,
    ),
    LoopMutant(
        "flat_initialises_the_head_in_every_batch",
        "flat.py",
        (
            Edit("losses = []\n", "losses = []\nfirst = [p.detach().clone() for p in model.parameters()]\n"),
            Edit(
                "        outputs = model(**batch)\n        loss",
                """\
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), first, strict=True):
                parameter.copy_(value)
        outputs = model(**batch)
        loss""",
            ),
        ),
        "effect::updates-are-kept",
        update=2,
    ),
    LoopMutant(
        "flat_keeps_eight_tokens",
        "flat.py",
        (Edit("truncation=True)", "truncation=True, max_length=8)"),),
        "inputs::not-cut-off",
    ),
    LoopMutant(
        "raw_torch_broadcasts_the_squared_error",
        "raw_torch.py",
        (
            Edit("import cross_entropy", "import mse_loss"),
            Edit("self.head = nn.Linear(size, 2)", "self.head = nn.Linear(size, 1)"),
            Edit(
                "cross_entropy(logits.float(), labels.to(device))",
                "mse_loss(logits.float(), labels.float().to(device))",
            ),
            Edit("mask.to(device)).argmax(dim=-1)", "mask.to(device)).squeeze(-1) > 0.5"),
        ),
        "loss::shapes-agree",
        update=1,
    ),
    LoopMutant(
        "functions_reports_the_micro_f1",
        "functions.py",
        (Edit("f1_score(references, predictions)", 'f1_score(references, predictions, average="micro")'),),
        "metrics::tells-apart",
    ),
    LoopMutant(
        "functions_plans_more_epochs_than_it_makes",
        "functions.py",
        (Edit("total_steps = EPOCHS * len(train_loader)", "total_steps = 2 * EPOCHS * len(train_loader)"),),
        "schedule::may-end-early",
    ),
)

VARIANTS: tuple[Variant, ...] = (
    Variant(
        "flat_frozen_backbone",
        "flat.py",
        (Edit("optimizer = AdamW(", "model.bert.requires_grad_(False)\noptimizer = AdamW("),),
    ),
    Variant(
        "custom_frozen_backbone_left_out_of_the_optimizer",
        "custom.py",
        (
            Edit(
                "    optimizer = AdamW(model.parameters(), ",
                """\
    model.backbone.requires_grad_(False)
    optimizer = AdamW([p for p in model.parameters() if p.requires_grad], """,
            ),
        ),
    ),
    Variant(
        "functions_gradual_unfreezing",
        "functions.py",
        (
            Edit("    optimizer = AdamW(", "    model.bert.requires_grad_(False)\n    optimizer = AdamW("),
            Edit(
                "        loss = train_epoch(",
                "        model.bert.encoder.layer[-epoch].requires_grad_(True)\n        loss = train_epoch(",
            ),
        ),
    ),
    Variant(
        "custom_low_rank_adapters",
        "custom.py",
        (
            Edit(
                "\n\nclass MeanPoolingClassifier",
                """

class LowRankAdapter(nn.Module):
    def __init__(self, linear, rank=4, alpha=8):
        super().__init__()
        self.linear = linear
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)
        self.scale = alpha / rank
        nn.init.zeros_(self.up.weight)

    def forward(self, hidden):
        return self.linear(hidden) + self.scale * self.up(self.down(hidden))


class MeanPoolingClassifier""",
            ),
            Edit(
                "        size = self.backbone",
                """\
        self.backbone.requires_grad_(False)
        for layer in self.backbone.encoder.layer:
            layer.attention.self.query = LowRankAdapter(layer.attention.self.query)
            layer.attention.self.value = LowRankAdapter(layer.attention.self.value)
        size = self.backbone""",
            ),
        ),
    ),
    Variant(
        "custom_backbone_in_eval_mode_while_frozen",
        "custom.py",
        (
            Edit(
                "        size = self.backbone",
                "        self.backbone.requires_grad_(False)\n        size = self.backbone",
            ),
            Edit("        model.train()\n", "        model.train()\n        model.backbone.eval()\n"),
        ),
    ),
    Variant(
        "custom_without_the_pooler",
        "custom.py",
        (
            Edit(
                "from_pretrained(checkpoint)\n        size",
                "from_pretrained(checkpoint, add_pooling_layer=False)\n        size",
            ),
        ),
    ),
    Variant(
        "two_phase_one_optimizer_that_gets_a_group_later",
        "two_phase.py",
        (
            Edit(
                """\
    optimizer = AdamW(
        [
            {"params": model.bert.parameters(), "lr": 8e-4},
            {"params": model.classifier.parameters(), "lr": 1e-3},
        ],
        weight_decay=0.01,
    )
    fit(model, train_loader, optimizer, epochs=3)
""",
                """\
    for group in head_optimizer.param_groups:
        group["lr"] = group["initial_lr"] = 1e-3
    head_optimizer.add_param_group({"params": model.bert.parameters(), "lr": 8e-4})
    fit(model, train_loader, head_optimizer, epochs=3)
""",
            ),
        ),
    ),
    Variant(
        "flat_embeddings_resized_after_the_optimizer",
        "flat.py",
        (Edit("num_epochs = 3\n", "model.resize_token_embeddings(448)\n\nnum_epochs = 3\n"),),
        on=("transformers>=4.46",),
    ),
    Variant("flat_cosine", "flat.py", (Edit('"linear"', '"cosine"'),)),
    Variant("flat_constant", "flat.py", (Edit('"linear"', '"constant"'),)),
    Variant(
        "flat_no_schedule",
        "flat.py",
        (
            Edit(
                'lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=0,'
                " num_training_steps=num_training_steps)\n",
                "",
            ),
            Edit("        lr_scheduler.step()\n", ""),
        ),
    ),
    Variant(
        "accelerated_cosine_above_a_minimum",
        "accelerated.py",
        (
            Edit("    get_cosine_schedule_with_warmup,\n", "    get_cosine_with_min_lr_schedule_with_warmup,\n"),
            Edit(
                "get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=num_updates)",
                "get_cosine_with_min_lr_schedule_with_warmup(optimizer, 2, num_updates, min_lr_rate=0.1)",
            ),
        ),
        on=("transformers>=4.57",),
    ),
    Variant(
        "accelerated_schedule_stepped_where_gradients_are_synchronized",
        "accelerated.py",
        (
            Edit("eval_dataloader, lr_scheduler = accelerator", "eval_dataloader = accelerator"),
            Edit("train_dataloader, eval_dataloader, lr_scheduler\n", "train_dataloader, eval_dataloader\n"),
            Edit(
                "                lr_scheduler.step()\n",
                "                if accelerator.sync_gradients:\n                    lr_scheduler.step()\n",
            ),
        ),
    ),
    Variant(
        "functions_one_cycle",
        "functions.py",
        (
            Edit(
                "get_linear_schedule_with_warmup(optimizer, int(WARMUP_RATIO * total_steps), total_steps)",
                "torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=total_steps)",
            ),
        ),
    ),
    Variant(
        "custom_step_lr",
        "custom.py",
        (
            Edit("import ExponentialLR", "import StepLR"),
            Edit("ExponentialLR(optimizer, gamma=0.7)", "StepLR(optimizer, step_size=2, gamma=0.1)"),
        ),
    ),
    Variant(
        "custom_reduce_on_plateau",
        "custom.py",
        (
            Edit("import ExponentialLR", "import ReduceLROnPlateau"),
            Edit(
                "ExponentialLR(optimizer, gamma=0.7)",
                'ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=0)',
            ),
            Edit("        scheduler.step()\n", ""),
            Edit("        print(", "        scheduler.step(accuracy)\n        print("),
        ),
    ),
    Variant(
        "raw_torch_warmup_before_cosine",
        "raw_torch.py",
        (
            Edit(
                "torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)",
                """\
torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=1),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS),
        ],
        milestones=[1],
    )""",
            ),
        ),
    ),
    Variant(
        "two_phase_warm_restarts",
        "two_phase.py",
        (
            Edit("import CosineAnnealingLR", "import CosineAnnealingWarmRestarts"),
            Edit(
                "CosineAnnealingLR(optimizer, T_max=epochs * len(loader))",
                "CosineAnnealingWarmRestarts(optimizer, T_0=len(loader))",
            ),
        ),
    ),
    Variant(
        "flat_adafactor",
        "flat.py",
        (
            Edit("from torch.optim import AdamW\n", "from torch.optim import Adafactor\n"),
            Edit("AdamW(model.parameters(), lr=5e-5)", "Adafactor(model.parameters(), lr=1e-3)"),
        ),
    ),
    Variant(
        "functions_adafactor_of_transformers",
        "functions.py",
        (
            Edit("from torch.optim import AdamW\n", ""),
            Edit("from transformers import AutoModel", "from transformers import Adafactor, AutoModel"),
            Edit(
                "AdamW(parameter_groups(model), lr=LEARNING_RATE)",
                "Adafactor(parameter_groups(model), lr=LEARNING_RATE, scale_parameter=False, relative_step=False)",
            ),
        ),
    ),
    Variant(
        "custom_two_optimizers",
        "custom.py",
        (
            Edit(
                "    optimizer = AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)\n",
                """\
    optimizer = AdamW(model.backbone.parameters(), lr=2e-4, weight_decay=0.01)
    head_optimizer = torch.optim.SGD(model.head.parameters(), lr=1e-2, momentum=0.9)
""",
            ),
            Edit(
                "            optimizer.zero_grad()\n",
                "            optimizer.zero_grad()\n            head_optimizer.zero_grad()\n",
            ),
            Edit("            optimizer.step()\n", "            optimizer.step()\n            head_optimizer.step()\n"),
        ),
    ),
    Variant(
        "flat_learning_rates_by_layer",
        "flat.py",
        (
            Edit(
                "optimizer = AdamW(model.parameters(), lr=5e-5)\n",
                """\
groups = [
    {"params": model.bert.embeddings.parameters(), "lr": 1e-5},
    *({"params": layer.parameters(), "lr": 2e-5 * 1.5**depth} for depth, layer in enumerate(model.bert.encoder.layer)),
    {"params": [*model.bert.pooler.parameters(), *model.classifier.parameters()]},
]
optimizer = AdamW(groups, lr=1e-4)
""",
            ),
        ),
    ),
    Variant(
        "functions_updates_through_a_closure",
        "functions.py",
        (
            Edit(
                """\
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
""",
                """\

        def closure(batch=batch):
            optimizer.zero_grad()
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            return loss

        loss = optimizer.step(closure)
""",
            ),
        ),
    ),
    Variant("flat_clears_the_gradients_of_the_model", "flat.py", (Edit("optimizer.zero_grad()", "model.zero_grad()"),)),
    Variant(
        "two_phase_sets_gradients_to_none_by_hand",
        "two_phase.py",
        (
            Edit(
                "            optimizer.zero_grad()\n",
                "            for parameter in model.parameters():\n                parameter.grad = None\n",
            ),
        ),
    ),
    Variant(
        "functions_clips_by_value",
        "functions.py",
        (Edit("clip_grad_norm_(model.parameters(), MAX_NORM)", "clip_grad_value_(model.parameters(), 0.1)"),),
    ),
    Variant(
        "accumulating_by_rows",
        "accumulating.py",
        (
            Edit(
                "            loss = loss / args.accumulation\n",
                """\
            first = (step - 1) // args.accumulation * args.accumulation * args.batch_size
            window = min(args.accumulation * args.batch_size, len(train_loader.dataset) - first)
            loss = loss * len(batch["labels"]) / window
""",
            ),
        ),
    ),
    Variant(
        "accumulating_losses_for_one_backward",
        "accumulating.py",
        (
            Edit("        running = 0.0\n", "        running, window = 0.0, []\n"),
            Edit(
                "            loss = loss / args.accumulation\n            loss.backward()\n",
                "            window.append(loss)\n",
            ),
            Edit(
                "                torch.nn.utils.clip",
                """\
                torch.stack(window).mean().backward()
                window.clear()
                torch.nn.utils.clip""",
            ),
        ),
    ),
    Variant(
        "accumulating_drops_the_incomplete_window",
        "accumulating.py",
        (
            Edit(
                "for step, batch in enumerate(train_loader, start=1):",
                "for step, batch in enumerate(islice(train_loader, 12), start=1):",
            ),
            Edit("import math\n", "import math\nfrom itertools import islice\n"),
            Edit(
                "math.ceil(len(train_loader) / args.accumulation)", "math.floor(len(train_loader) / args.accumulation)"
            ),
        ),
    ),
    Variant(
        "functions_adversarial_embeddings",
        "functions.py",
        (
            Edit(
                "        loss.backward()\n",
                """\
        loss.backward()
        embeddings = model.get_input_embeddings().weight
        kept = embeddings.detach().clone()
        with torch.no_grad():
            embeddings.add_(embeddings.grad, alpha=1 / (embeddings.grad.norm().item() + 1e-12))
        model(**batch).loss.backward()
        with torch.no_grad():
            embeddings.copy_(kept)
""",
            ),
        ),
    ),
    Variant(
        "functions_sharpness_aware",
        "functions.py",
        (
            Edit(
                "        loss.backward()\n",
                """\
        loss.backward()
        with torch.no_grad():
            trained = [p for p in model.parameters() if p.grad is not None]
            norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in trained])).item() + 1e-12
            steps = [0.05 * p.grad / norm for p in trained]
            torch._foreach_add_(trained, steps)
        optimizer.zero_grad()
        model(**batch).loss.backward()
        with torch.no_grad():
            torch._foreach_sub_(trained, steps)
""",
            ),
        ),
    ),
    Variant(
        "flat_gradient_checkpointing",
        "flat.py",
        (Edit("optimizer = AdamW(", "model.gradient_checkpointing_enable()\noptimizer = AdamW("),),
    ),
    Variant(
        "functions_bf16_autocast",
        "functions.py",
        (
            Edit(
                "        loss = model(**batch).loss\n",
                """\
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(**batch).loss
""",
            ),
        ),
    ),
    Variant(
        "functions_scaled_gradients",
        "functions.py",
        (
            Edit(
                "def train_epoch(",
                'SCALER = torch.amp.GradScaler("cuda" if torch.cuda.is_available() else "cpu")\n\n\ndef train_epoch(',
            ),
            Edit(
                "        loss.backward()\n",
                "        SCALER.scale(loss).backward()\n        SCALER.unscale_(optimizer)\n",
            ),
            Edit("        optimizer.step()\n", "        SCALER.step(optimizer)\n        SCALER.update()\n"),
        ),
    ),
    Variant("accelerated_bf16", "accelerated.py", (Edit("Accelerator(", 'Accelerator(mixed_precision="bf16", '),)),
    Variant(
        "functions_class_weights",
        "functions.py",
        (
            Edit(
                "        loss = model(**batch).loss\n",
                """\
        logits = model(**batch).logits
        weight = torch.tensor([2.0, 1.0], device=device)
        loss = torch.nn.functional.cross_entropy(logits, batch["labels"], weight=weight)
""",
            ),
        ),
    ),
    Variant(
        "custom_regularized_dropout",
        "custom.py",
        (
            Edit(
                """\
            logits = model(**inputs.to(device))
            loss = criterion(logits, labels.to(device))
""",
                """\
            inputs, labels = inputs.to(device), labels.to(device)
            first, second = model(**inputs), model(**inputs)
            p, q = first.log_softmax(dim=-1), second.log_softmax(dim=-1)
            divergence = nn.functional.kl_div(p, q, reduction="batchmean", log_target=True)
            divergence += nn.functional.kl_div(q, p, reduction="batchmean", log_target=True)
            loss = (criterion(first, labels) + criterion(second, labels)) / 2 + divergence / 2
""",
            ),
        ),
    ),
    Variant(
        "custom_focal_loss",
        "custom.py",
        (
            Edit(
                "            loss = criterion(logits, labels.to(device))\n",
                """\
            losses = nn.functional.cross_entropy(logits, labels.to(device), reduction="none")
            loss = ((1 - (-losses).exp()) ** 2 * losses).mean()
""",
            ),
        ),
    ),
    Variant(
        "custom_cross_entropy_of_log_probabilities",
        "custom.py",
        (Edit("return self.head(self.dropout(pooled))", "return self.head(self.dropout(pooled)).log_softmax(dim=-1)"),),
    ),
    Variant(
        "raw_torch_one_logit",
        "raw_torch.py",
        (
            Edit("import cross_entropy\n", "import binary_cross_entropy_with_logits\n"),
            Edit("self.head = nn.Linear(size, 2)", "self.head = nn.Linear(size, 1)"),
            Edit("return self.head(pooled)", "return self.head(pooled).squeeze(-1)"),
            Edit(
                "cross_entropy(logits.float(), labels.to(device))",
                "binary_cross_entropy_with_logits(logits.float(), labels.float().to(device))",
            ),
            Edit("mask.to(device)).argmax(dim=-1)", "mask.to(device)) > 0"),
        ),
    ),
    Variant(
        "flat_regression",
        "flat.py",
        (
            Edit("from datasets import load_from_disk\n", "from datasets import Value, load_from_disk\n"),
            Edit(
                'rename_column("label", "labels")\n',
                'rename_column("label", "labels").cast_column("labels", Value("float32"))\n',
            ),
            Edit("num_labels=2", "num_labels=1"),
            Edit(
                "    predictions = torch.argmax(outputs.logits, dim=-1)\n",
                "    predictions = (outputs.logits.squeeze(-1) > 0.5).long()\n",
            ),
            Edit('references=batch["labels"])', 'references=batch["labels"].long())'),
        ),
    ),
    Variant(
        "custom_three_labels",
        "custom.py",
        (
            Edit("NUM_LABELS = 2\n", "NUM_LABELS = 3\n"),
            Edit(
                "    dataset = load_from_disk(data)\n",
                """\
    dataset = load_from_disk(data).map(lambda row: {"topic": row["label"] * (1 + row["idx"] % 2)})
    dataset = dataset.remove_columns("label").rename_column("topic", "label")
""",
            ),
            Edit("f1_score(expected, predicted)", 'f1_score(expected, predicted, average="macro")'),
        ),
    ),
    Variant(
        "custom_batch_normalization",
        "custom.py",
        (Edit("nn.Linear(size, size), nn.Tanh()", "nn.Linear(size, size), nn.BatchNorm1d(size), nn.Tanh()"),),
    ),
    Variant(
        "raw_torch_packed_both_ways",
        "raw_torch.py",
        (
            Edit(
                "nn.GRU(size, size, batch_first=True)", "nn.GRU(size, size // 2, batch_first=True, bidirectional=True)"
            ),
            Edit(
                "        states, _ = self.gru(embedded)\n",
                """\
        lengths = mask.sum(dim=1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=mask.size(1))
""",
            ),
        ),
    ),
    Variant(
        "flat_average_of_the_weights",
        "flat.py",
        (
            Edit("from torch.optim import AdamW\n", "from torch import optim\nfrom torch.optim import AdamW\n"),
            Edit(
                "progress_bar = tqdm(",
                """\
averaged = optim.swa_utils.AveragedModel(model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9))
progress_bar = tqdm(""",
            ),
            Edit("        optimizer.step()\n", "        optimizer.step()\n        averaged.update_parameters(model)\n"),
            Edit("model.eval()\n", "averaged.eval()\n"),
            Edit(
                "    with torch.no_grad():\n        outputs = model(",
                "    with torch.no_grad():\n        outputs = averaged(",
            ),
        ),
    ),
    Variant(
        "flat_distilled_model_without_segment_ids",
        "flat.py",
        (
            Edit("import sys\n", "import sys\nimport tempfile\n"),
            Edit(
                "    DataCollatorWithPadding,\n",
                "    DataCollatorWithPadding,\n    DistilBertConfig,\n    DistilBertModel,\n",
            ),
            Edit("truncation=True)", "truncation=True, return_token_type_ids=False)"),
            Edit(
                "model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2)\n",
                """\
sizes = {"vocab_size": len(tokenizer), "n_layers": 2, "n_heads": 4, "dim": 64, "hidden_dim": 128}
config = DistilBertConfig(max_position_embeddings=128, **sizes)
with tempfile.TemporaryDirectory() as distilled:
    DistilBertModel(config).save_pretrained(distilled)
    model = AutoModelForSequenceClassification.from_pretrained(distilled, num_labels=2)
""",
            ),
        ),
    ),
    Variant(
        "flat_single_sentences",
        "flat.py",
        (
            Edit(
                "raw_datasets = load_from_disk(data)\n",
                'raw_datasets = load_from_disk(data).remove_columns("sentence2")\n',
            ),
            Edit('example["sentence1"], example["sentence2"]', 'example["sentence1"]'),
            Edit('["sentence1", "sentence2", "idx"]', '["sentence1", "idx"]'),
        ),
    ),
    Variant(
        "accumulating_masks_made_by_the_collator",
        "accumulating.py",
        (
            Edit(
                '["input_ids", "token_type_ids", "attention_mask", "label"]', '["input_ids", "token_type_ids", "label"]'
            ),
        ),
    ),
    Variant(
        "custom_rows_drawn_by_class",
        "custom.py",
        (
            Edit("import DataLoader\n", "import DataLoader, WeightedRandomSampler\n"),
            Edit(
                "    train_loader = DataLoader(",
                """\
    labels = torch.tensor(list(dataset["train"]["label"]))
    sampler = WeightedRandomSampler(class_weights(labels.tolist())[labels], num_samples=len(labels))
    train_loader = DataLoader(""",
            ),
            Edit("batch_size=BATCH_SIZE, shuffle=True", "batch_size=BATCH_SIZE, sampler=sampler"),
            Edit('    weights = class_weights(list(dataset["train"]["label"])).to(device)\n', ""),
            Edit("CrossEntropyLoss(weight=weights, ", "CrossEntropyLoss("),
        ),
    ),
    Variant(
        "trainer_batches_of_one_length",
        "trainer.py",
        (
            Edit(
                '        report_to="none",\n',
                '        report_to="none",\n        train_sampling_strategy="group_by_length",\n',
            ),
        ),
        on=("transformers>=5",),
    ),
    Variant(
        "functions_drops_the_last_training_batch",
        "functions.py",
        (Edit("shuffle=True, ", "shuffle=True, drop_last=True, "),),
    ),
    Variant(
        "functions_batches_of_one_row",
        "functions.py",
        (Edit("BATCH_SIZE = 8", "BATCH_SIZE = 1"), Edit("EPOCHS = 3", "EPOCHS = 2")),
    ),
    Variant(
        "functions_two_workers",
        "functions.py",
        (Edit("shuffle=True, collate_fn=collate)", "shuffle=True, collate_fn=collate, num_workers=2)"),),
    ),
    Variant(
        "flat_iterable_dataset",
        "flat.py",
        (
            Edit(
                'train_dataloader = DataLoader(tokenized_datasets["train"], shuffle=True, batch_size=8,',
                """\
train_rows = tokenized_datasets["train"].to_iterable_dataset().shuffle(seed=46, buffer_size=64)
train_dataloader = DataLoader(train_rows, batch_size=8,""",
            ),
            Edit("num_epochs * len(train_dataloader)", 'num_epochs * -(-len(tokenized_datasets["train"]) // 8)'),
            Edit("for _ in range(num_epochs):\n", "for epoch in range(num_epochs):\n    train_rows.set_epoch(epoch)\n"),
        ),
        on=("datasets>=3",),
    ),
    Variant(
        "raw_torch_batches_by_hand",
        "raw_torch.py",
        (
            Edit(
                '    train_loader = DataLoader(tensors(dataset["train"], tokenizer), batch_size=8, shuffle=True)\n',
                '    train_set = tensors(dataset["train"], tokenizer)\n',
            ),
            Edit(
                "        for input_ids, mask, labels in train_loader:\n",
                """\
        for rows in torch.randperm(len(train_set)).split(8):
            input_ids, mask, labels = train_set[rows.tolist()]
""",
            ),
        ),
    ),
    Variant(
        "flat_no_evaluation",
        "flat.py",
        (
            Edit("from harness.metrics import load_metric\n\n", ""),
            Edit(
                """\
metric = load_metric()
model.eval()
for batch in eval_dataloader:
    batch = {k: v.to(device) for k, v in batch.items()}
    with torch.no_grad():
        outputs = model(**batch)

    predictions = torch.argmax(outputs.logits, dim=-1)
    metric.add_batch(predictions=predictions, references=batch["labels"])

""",
                "",
            ),
            Edit("print(metric.compute())\n", ""),
        ),
    ),
    Variant(
        "flat_shuffled_evaluation_in_larger_batches",
        "flat.py",
        (
            Edit(
                'tokenized_datasets["validation"], batch_size=8',
                'tokenized_datasets["validation"], shuffle=True, batch_size=16',
            ),
        ),
    ),
    Variant(
        "flat_scores_of_sklearn",
        "flat.py",
        (
            Edit("from harness.metrics import load_metric\n\n", ""),
            Edit(
                "from torch.optim import AdamW\n",
                "from sklearn.metrics import accuracy_score, f1_score\nfrom torch.optim import AdamW\n",
            ),
            Edit("metric = load_metric()\n", "predicted, true = [], []\n"),
            Edit(
                '    metric.add_batch(predictions=predictions, references=batch["labels"])\n',
                '    predicted.extend(predictions.tolist())\n    true.extend(batch["labels"].tolist())\n',
            ),
            Edit(
                "print(metric.compute())\n",
                'print({"accuracy": accuracy_score(true, predicted), "f1": f1_score(true, predicted)})\n',
            ),
        ),
    ),
    Variant(
        "flat_accuracy_by_hand",
        "flat.py",
        (
            Edit("from harness.metrics import load_metric\n\n", ""),
            Edit("metric = load_metric()\n", "correct = 0\n"),
            Edit(
                '    metric.add_batch(predictions=predictions, references=batch["labels"])\n',
                '    correct += (predictions == batch["labels"]).sum().item()\n',
            ),
            Edit("print(metric.compute())\n", "print(correct / len(eval_dataloader.dataset))\n"),
        ),
    ),
    Variant(
        "flat_evaluates_within_the_epoch",
        "flat.py",
        (
            Edit(
                "        progress_bar.update(1)\n",
                """\
        progress_bar.update(1)
        if len(losses) % 5 == 0:
            model.eval()
            with torch.no_grad():
                evaluated = [model(**batch.to(device)).loss.item() for batch in eval_dataloader]
            print("evaluation loss", sum(evaluated) / len(evaluated))
            model.train()
""",
            ),
        ),
    ),
    Variant(
        "resume_keeps_clones_of_the_best",
        "resume.py",
        (
            Edit("import copy\n", ""),
            Edit(
                "    best_state = copy.deepcopy(model.state_dict())\n    for",
                "    best_state = {name: values.clone() for name, values in model.state_dict().items()}\n    for",
            ),
            Edit(
                "            best_state = copy.deepcopy(model.state_dict())\n",
                "            best_state = {name: values.clone() for name, values in model.state_dict().items()}\n",
            ),
        ),
    ),
    Variant(
        "functions_evaluates_the_training_rows_as_well",
        "functions.py",
        (
            Edit(
                "        print(f",
                """\
        print("on the training rows:", evaluate(model, train_loader, device))
        print(f""",
            ),
        ),
    ),
    Variant(
        "functions_stops_early",
        "functions.py",
        (
            Edit("EPOCHS = 3\n", "EPOCHS = 8\n"),
            Edit("    for epoch in range(1", "    best = 0.0\n    for epoch in range(1"),
            Edit(
                "        print(f",
                """\
        if scores["accuracy"] <= best:
            break
        best = scores["accuracy"]
        print(f""",
            ),
        ),
        warns=("schedule::may-end-early",),
    ),
    Variant(
        "flat_stops_after_some_updates",
        "flat.py",
        (
            Edit("num_training_steps = num_epochs * len(train_dataloader)", "num_training_steps = 20"),
            Edit(
                "        progress_bar.update(1)\n",
                "        progress_bar.update(1)\n        if len(losses) == num_training_steps:\n            break\n",
            ),
        ),
    ),
    Variant(
        "custom_predicts_with_dropout",
        "custom.py",
        (
            Edit(
                "            logits = model(**inputs.to(device))\n        predicted",
                """\
            for module in model.modules():
                module.train(isinstance(module, nn.Dropout))
            logits = torch.stack([model(**inputs.to(device)).softmax(dim=-1) for _ in range(5)]).mean(dim=0)
        predicted""",
            ),
        ),
    ),
    Variant("functions_trains_twice", "functions.py", (Edit("    main()\n", "    main()\n    main()\n"),)),
    Variant(
        "trainer_without_accumulation",
        "trainer.py",
        (Edit('        report_to="none",\n', '        report_to="none",\n        gradient_accumulation_steps=1,\n'),),
    ),
    Variant(
        "trainer_smooths_labels",
        "trainer.py",
        (Edit('        report_to="none",\n', '        report_to="none",\n        label_smoothing_factor=0.1,\n'),),
    ),
    Variant(
        "trainer_optimizer_of_its_own",
        "trainer.py",
        (
            Edit("import load_from_disk\n", "import load_from_disk\nfrom torch.optim import SGD\n"),
            Edit(
                "        compute_metrics=compute_metrics,\n",
                """\
        compute_metrics=compute_metrics,
        optimizers=(SGD(model.parameters(), lr=1e-2, momentum=0.9), None),
""",
            ),
        ),
    ),
    Variant(
        "trainer_accumulates_a_scaled_loss",
        "trainer.py",
        (
            Edit(
                "        per_device_train_batch_size=8,\n",
                "        per_device_train_batch_size=4,\n        gradient_accumulation_steps=2,\n",
            ),
            Edit("    trainer.train()\n", "    trainer.model_accepts_loss_kwargs = False\n    trainer.train()\n"),
        ),
        on=TRAINER_DIVIDES_IF_TOLD,
    ),
)

UNSEEN: tuple[Unseen, ...] = (
    Unseen(
        "raw_torch_shuffles_the_labels_alone",
        "raw_torch.py",
        (Edit('list(split["label"])', 'list(split.shuffle(seed=1)["label"])'),),
        "texts that no tokenizer of transformers has seen cannot be told from others",
    ),
    Unseen(
        "custom_scales_learning_rates_by_an_unknown_key",
        "custom.py",
        (
            Edit(
                "    optimizer = AdamW(model.parameters(), ",
                """\
    groups = [{"params": model.backbone.parameters(), "lr_scale": 0.1}, {"params": model.head.parameters()}]
    optimizer = AdamW(groups, """,
            ),
        ),
        "a key of the script's own may be read by the script itself",
    ),
    Unseen(
        "two_phase_averages_over_batches",
        "two_phase.py",
        (
            Edit("    metric = load_metric()\n", "    accuracies = []\n"),
            Edit(
                '            metric.add_batch(predictions=predictions, references=batch["labels"])\n',
                '            accuracies.append((predictions == batch["labels"]).float().mean().item())\n',
            ),
            Edit("    return metric.compute()\n", '    return {"accuracy": sum(accuracies) / len(accuracies)}\n'),
        ),
        "a metric that is computed by hand cannot be seen",
    ),
    Unseen(
        "raw_torch_divides_by_full_batches",
        "raw_torch.py",
        (Edit("return correct / total", "return correct / (len(loader) * loader.batch_size)"),),
        "a metric that is computed by hand cannot be seen",
    ),
    Unseen(
        "trainer_takes_a_logit_for_a_probability",
        "trainer.py",
        (Edit("np.argmax(logits, axis=-1)", "(logits[:, 1] > 0.5).astype(int)"),),
        "on these rows a threshold explains the predictions",
    ),
    Unseen(
        "resume_saves_the_first_checkpoint",
        "resume.py",
        (Edit('save_pretrained(folder / "best")', 'save_pretrained(folder / "best", state_dict=state["model"])'),),
        "another state than the model's may be saved on purpose",
    ),
    Unseen(
        "trainer_saves_before_training",
        "trainer.py",
        (Edit("    trainer.train()\n", '    trainer.save_model(f"{output_dir}/final")\n    trainer.train()\n'),),
        "Trainer saves checkpoints later, too",
    ),
    Unseen(
        "resume_saves_before_the_epoch",
        "resume.py",
        (
            Edit(
                """\
    train_epoch(model, train_loader, optimizer, scheduler)
    save(path, model, optimizer, scheduler, epoch=1)
""",
                """\
    save(path, model, optimizer, scheduler, epoch=1)
    train_epoch(model, train_loader, optimizer, scheduler)
""",
            ),
        ),
        "the state that is resumed from is a whole one",
    ),
    Unseen(
        "resume_compares_with_the_first",
        "resume.py",
        (Edit("            best_accuracy = accuracy\n", ""),),
        "the states that were kept are those with the lowest loss so far",
    ),
    Unseen(
        "resume_saves_the_last",
        "resume.py",
        (Edit("    model.load_state_dict(best_state)\n", ""),),
        "a state that is kept and never used may be for something else",
    ),
)
