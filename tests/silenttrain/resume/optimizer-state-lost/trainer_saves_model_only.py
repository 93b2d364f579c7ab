"""Train with Trainer at a constant learning rate and save_only_model=True: it goes on from the checkpoint
without AdamW's moments.
"""

import json
import os

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint


def build_model():
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=40,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=24,
            max_position_embeddings=12,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            classifier_dropout=0.0,
            num_labels=2,
        )
    )


def build_dataset(size):
    torch.manual_seed(2)
    ids = torch.randint(1, 40, (size, 6))
    return [{"input_ids": row, "labels": int(row[0] % 2)} for row in ids]


def readable(folder):
    try:
        with open(f"{folder}/trainer_state.json") as file:
            return bool(json.load(file))
    except (OSError, ValueError):
        return False


set_seed(23)
args = TrainingArguments(
    "only-model",
    num_train_epochs=3,
    per_device_train_batch_size=5,
    learning_rate=2e-3,
    lr_scheduler_type="constant",
    save_strategy="epoch",
    save_only_model=True,
    logging_steps=5,
    seed=23,
    use_cpu=True,
    report_to="none",
    disable_tqdm=True,
)
trainer = Trainer(build_model(), args, train_dataset=build_dataset(50))
checkpoint = None
while os.path.isdir("only-model") and (checkpoint := get_last_checkpoint("only-model")) and not readable(checkpoint):
    os.rename(checkpoint, f"only-model/broken-{os.path.basename(checkpoint).split('-')[1]}-{os.getpid()}")
trainer.train(resume_from_checkpoint=checkpoint)
trainer.save_model("only-model/final")
