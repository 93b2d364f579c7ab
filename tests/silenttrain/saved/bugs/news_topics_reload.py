"""Fine-tune a topic classifier with the Trainer, then reload the folder and write predictions for the archive."""

import json

import numpy as np
import torch
from datasets import Dataset
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertModel,
    Trainer,
    TrainingArguments,
    set_seed,
)

TOPICS = ["politics", "economy", "sport", "culture", "science", "other"]
REPORTED = TOPICS[:-1]


def articles(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(TOPICS), n)
    ids = rng.integers(60, 110, (n, 12))
    for row, label in zip(ids, labels, strict=True):
        row[0] = 2
        row[rng.permutation(11)[:5] + 1] = 5 + 8 * label + rng.integers(0, 8, 5)
    return Dataset.from_dict({"input_ids": ids.tolist(), "labels": labels.tolist()})


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


set_seed(81)
config = BertConfig(
    vocab_size=110,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=16,
    initializer_range=0.1,
)
BertModel(config).save_pretrained("out/base")
model = AutoModelForSequenceClassification.from_pretrained("out/base", num_labels=len(TOPICS))

trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir="out/runs",
        per_device_train_batch_size=16,
        num_train_epochs=4,
        learning_rate=3e-3,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    ),
    train_dataset=articles(400, 1),
    eval_dataset=articles(120, 2),
    compute_metrics=accuracy,
)
trainer.train()
print("final:", trainer.evaluate())
trainer.save_model("out/topics")

# the archive job knows only the topics that go into the report
archive = articles(64, 3).remove_columns("labels")
predictor = AutoModelForSequenceClassification.from_pretrained(
    "out/topics", num_labels=len(REPORTED), ignore_mismatched_sizes=True
)
predictor.eval()
with torch.no_grad():
    logits = predictor(input_ids=torch.tensor(archive["input_ids"])).logits
predicted = [REPORTED[i] for i in logits.argmax(-1).tolist()]
counts = {topic: predicted.count(topic) for topic in REPORTED}
print(counts)
with open("out/archive_topics.json", "w") as f:
    json.dump(predicted, f)
predictor.save_pretrained("out/topics_reported")
