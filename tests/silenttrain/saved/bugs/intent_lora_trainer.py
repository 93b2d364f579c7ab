"""Fine-tune a BERT intent classifier with LoRA through the transformers Trainer."""

import numpy as np
import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForSequenceClassification, BertConfig, BertModel, Trainer, TrainingArguments, set_seed

INTENTS = ["balance", "transfer", "card_lost", "opening_hours"]


def make_split(n, seed):
    rng = np.random.default_rng(seed)
    rows = {"input_ids": [], "labels": []}
    for _ in range(n):
        label = int(rng.integers(len(INTENTS)))
        words = np.concatenate([5 + 6 * label + rng.integers(0, 6, 5), rng.integers(30, 70, 5)])
        rng.shuffle(words)
        rows["input_ids"].append([1, *words.tolist()])
        rows["labels"].append(label)
    return Dataset.from_dict(rows)


def compute_metrics(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


set_seed(33)
config = BertConfig(
    vocab_size=70,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=16,
    initializer_range=0.15,
)
BertModel(config).save_pretrained("out/base")

model = AutoModelForSequenceClassification.from_pretrained(
    "out/base",
    num_labels=len(INTENTS),
    id2label=dict(enumerate(INTENTS)),
    label2id={name: i for i, name in enumerate(INTENTS)},
)
peft_config = LoraConfig(
    r=8,
    lora_alpha=32,
    lora_dropout=0.05,
    target_modules=["query", "key", "value", "attention.output.dense"],
    modules_to_save=["classification_head"],
)
model = get_peft_model(model, peft_config)
model.print_trainable_parameters()

args = TrainingArguments(
    output_dir="out/runs",
    per_device_train_batch_size=16,
    per_device_eval_batch_size=64,
    num_train_epochs=5,
    learning_rate=1e-2,
    lr_scheduler_type="cosine",
    eval_strategy="epoch",
    logging_strategy="epoch",
    save_strategy="no",
    report_to="none",
    use_cpu=True,
    label_names=["labels"],
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=make_split(400, 1),
    eval_dataset=make_split(160, 2),
    compute_metrics=compute_metrics,
)
trainer.train()
print(trainer.evaluate())
trainer.save_model("out/intent_lora")
torch.save({"intents": INTENTS}, "out/intent_lora/labels.pt")
