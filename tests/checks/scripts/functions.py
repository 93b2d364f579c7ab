"""Fine-tune a sequence classifier with warmup, clipping and weight decay for some of the parameters."""

import sys

import torch
from datasets import load_from_disk
from sklearn.metrics import accuracy_score, f1_score
from torch.nn.utils.rnn import pad_sequence
from torch.optim import AdamW
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup, set_seed

EPOCHS = 3
BATCH_SIZE = 8
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.01
WARMUP_RATIO = 0.1
MAX_NORM = 1.0


class PairDataset(Dataset):
    def __init__(self, split, tokenizer):
        self.encodings = tokenizer(list(split["sentence1"]), list(split["sentence2"]), truncation=True)
        self.labels = list(split["label"])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        item = {name: torch.tensor(values[index]) for name, values in self.encodings.items()}
        item["labels"] = torch.tensor(self.labels[index])
        return item


def collate(items):
    batch = {
        name: pad_sequence([item[name] for item in items], batch_first=True)
        for name in ("input_ids", "token_type_ids", "attention_mask")
    }
    batch["labels"] = torch.stack([item["labels"] for item in items])
    return batch


def parameter_groups(model):
    no_decay = ("bias", "LayerNorm.weight")
    decayed, exempt = [], []
    for name, parameter in model.named_parameters():
        if any(part in name for part in no_decay):
            exempt.append(parameter)
        else:
            decayed.append(parameter)
    return [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": exempt, "weight_decay": 0.0}]


def train_epoch(model, loader, optimizer, scheduler, device):
    model.train()
    total = 0.0
    for batch in loader:
        batch = {name: values.to(device) for name, values in batch.items()}
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        scheduler.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    predictions, references = [], []
    for batch in loader:
        batch = {name: values.to(device) for name, values in batch.items()}
        logits = model(**batch).logits
        predictions.extend(logits.argmax(dim=-1).tolist())
        references.extend(batch["labels"].tolist())
    return {"accuracy": accuracy_score(references, predictions), "f1": f1_score(references, predictions)}


def main():
    data, checkpoint = sys.argv[1:3]
    set_seed(8)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    raw = load_from_disk(data)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    train_set = PairDataset(raw["train"], tokenizer)
    eval_set = PairDataset(raw["validation"], tokenizer)
    train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate)
    eval_loader = DataLoader(eval_set, batch_size=BATCH_SIZE, collate_fn=collate)

    model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2).to(device)
    optimizer = AdamW(parameter_groups(model), lr=LEARNING_RATE)
    total_steps = EPOCHS * len(train_loader)
    scheduler = get_linear_schedule_with_warmup(optimizer, int(WARMUP_RATIO * total_steps), total_steps)

    for epoch in range(1, EPOCHS + 1):
        loss = train_epoch(model, train_loader, optimizer, scheduler, device)
        scores = evaluate(model, eval_loader, device)
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {scores['accuracy']:.4f}, f1 {scores['f1']:.4f}")


if __name__ == "__main__":
    main()
