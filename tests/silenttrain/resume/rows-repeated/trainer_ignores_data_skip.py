"""Resume Trainer in the middle of an epoch with ignore_data_skip=True: it begins again with rows it has been
trained on.
"""

import json
import pathlib

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

where = pathlib.Path("quick-resume")


class Pairs(torch.utils.data.Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(70)
        self.tokens = torch.randint(2, 32, (count, 8), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, item):
        row = self.tokens[item]
        return {"input_ids": row, "labels": (row[:4].sum() > row[4:].sum()).long()}


def finished_checkpoints():
    for folder in where.glob("checkpoint-*"):
        try:
            yield json.loads((folder / "trainer_state.json").read_text())["global_step"], str(folder)
        except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
            continue


set_seed(70)
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=32,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=16,
        max_position_embeddings=8,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
    )
)
trainer = Trainer(
    model,
    TrainingArguments(
        str(where),
        per_device_train_batch_size=8,
        num_train_epochs=3,
        learning_rate=3e-3,
        save_steps=7,
        ignore_data_skip=True,
        logging_strategy="epoch",
        seed=70,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    ),
    train_dataset=Pairs(96),
)
newest = max(finished_checkpoints(), default=(0, None))[1]
trainer.train(resume_from_checkpoint=newest)
trainer.save_model(str(where / "model"))
