"""Supervised fine-tuning of a small GPT-2 with TRL, evaluated after each epoch."""

import sys

import torch
from datasets import Dataset, load_from_disk
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel
from trl import SFTConfig, SFTTrainer

data, checkpoint = sys.argv[1:3]
torch.manual_seed(23)

tokenizer = AutoTokenizer.from_pretrained(checkpoint)
tokenizer.eos_token = "[SEP]"
raw_datasets = load_from_disk(data)
train_rows = [{"prompt": row["sentence1"], "completion": " " + row["sentence2"]} for row in raw_datasets["train"]]
eval_rows = [{"prompt": row["sentence1"], "completion": " " + row["sentence2"]} for row in raw_datasets["validation"]]

size = {"n_positions": 256, "n_embd": 32, "n_layer": 2, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **size))
settings = {
    "output_dir": "out",
    "num_train_epochs": 2,
    "per_device_train_batch_size": 8,
    "learning_rate": 1e-3,
    "eval_strategy": "epoch",
    "save_strategy": "no",
    "report_to": "none",
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "disable_tqdm": True,
}

trainer = SFTTrainer(
    model=model,
    args=SFTConfig(**settings),
    train_dataset=Dataset.from_list(train_rows),
    eval_dataset=Dataset.from_list(eval_rows),
    processing_class=tokenizer,
)
trainer.train()
