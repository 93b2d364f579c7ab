"""Fine-tune a small BERT with Trainer, a checkpoint every 5 steps; a restart takes the newest complete one."""

import json
import os

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

OUTPUT = "bert-output"


def examples(number=72, length=7):
    generator = torch.Generator().manual_seed(3)
    rows = []
    for _ in range(number):
        ids = torch.randint(4, 60, (length,), generator=generator)
        rows.append({"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": int(ids[0] > ids[1])})
    return rows


def is_complete(folder):
    """Trainer writes trainer_state.json last: a folder in which it cannot be read is of a save cut short."""
    try:
        with open(os.path.join(folder, "trainer_state.json")) as file:
            json.load(file)
    except (OSError, ValueError):
        return False
    return True


def last_complete_checkpoint():
    if not os.path.isdir(OUTPUT):
        return None
    folders = [os.path.join(OUTPUT, name) for name in os.listdir(OUTPUT) if name.startswith("checkpoint-")]
    complete = [folder for folder in folders if is_complete(folder)]
    return max(complete, key=lambda folder: int(folder.rsplit("-", 1)[1]), default=None)


set_seed(19)
config = BertConfig(
    vocab_size=60,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
)
arguments = TrainingArguments(
    output_dir=OUTPUT,
    num_train_epochs=3,
    per_device_train_batch_size=6,
    learning_rate=1e-3,
    warmup_steps=5,
    save_strategy="steps",
    save_steps=5,
    save_total_limit=3,
    logging_steps=1,
    seed=19,
    use_cpu=True,
    report_to=[],
    disable_tqdm=True,
)
trainer = Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=examples())
trainer.train(resume_from_checkpoint=last_complete_checkpoint())
trainer.save_model(os.path.join(OUTPUT, "final"))
