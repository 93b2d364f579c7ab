"""Fine-tune a classifier of its own on top of a pretrained encoder, with weighted classes and smoothed labels."""

import sys
from functools import partial

import torch
from datasets import load_from_disk
from sklearn.metrics import accuracy_score, f1_score
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer, set_seed

EPOCHS = 3
BATCH_SIZE = 8
NUM_LABELS = 2


class MeanPoolingClassifier(nn.Module):
    def __init__(self, checkpoint, num_labels):
        super().__init__()
        self.backbone = AutoModel.from_pretrained(checkpoint)
        size = self.backbone.config.hidden_size
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, num_labels))

    def forward(self, input_ids, attention_mask, token_type_ids):
        hidden = self.backbone(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
        ).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
        return self.head(self.dropout(pooled))


def collate(rows, tokenizer):
    first, second = [row["sentence1"] for row in rows], [row["sentence2"] for row in rows]
    inputs = tokenizer(first, second, padding=True, truncation=True, return_tensors="pt")
    labels = torch.tensor([row["label"] for row in rows])
    return inputs, labels


def class_weights(labels):
    counts = torch.bincount(torch.tensor(labels), minlength=NUM_LABELS)
    return counts.sum() / (NUM_LABELS * counts)


def evaluate(model, loader, device):
    model.eval()
    predicted, expected = [], []
    for inputs, labels in loader:
        with torch.no_grad():
            logits = model(**inputs.to(device))
        predicted += logits.argmax(dim=-1).tolist()
        expected += labels.tolist()
    return accuracy_score(expected, predicted), f1_score(expected, predicted)


def main():
    data, checkpoint = sys.argv[1:3]
    set_seed(5)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dataset = load_from_disk(data)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    collate_fn = partial(collate, tokenizer=tokenizer)
    train_loader = DataLoader(dataset["train"], batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate_fn)
    eval_loader = DataLoader(dataset["validation"], batch_size=BATCH_SIZE, collate_fn=collate_fn)

    model = MeanPoolingClassifier(checkpoint, NUM_LABELS).to(device)
    weights = class_weights(list(dataset["train"]["label"])).to(device)
    criterion = nn.CrossEntropyLoss(weight=weights, label_smoothing=0.1)
    optimizer = AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
    scheduler = ExponentialLR(optimizer, gamma=0.7)

    for epoch in range(EPOCHS):
        model.train()
        for inputs, labels in train_loader:
            logits = model(**inputs.to(device))
            loss = criterion(logits, labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        accuracy, f1 = evaluate(model, eval_loader, device)
        print(f"epoch {epoch}: accuracy {accuracy:.4f}, f1 {f1:.4f}")


if __name__ == "__main__":
    main()
