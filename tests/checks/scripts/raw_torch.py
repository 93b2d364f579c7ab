"""Train a small recurrent classifier on padded tensors, with nothing of Transformers but the tokenizer."""

import sys

import torch
from datasets import load_from_disk
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoTokenizer

EPOCHS = 3


class PairReader(nn.Module):
    def __init__(self, vocab_size, pad_token_id, size=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, size, padding_idx=pad_token_id)
        self.dropout = nn.Dropout(0.2)
        self.gru = nn.GRU(size, size, batch_first=True)
        self.head = nn.Linear(size, 2)

    def forward(self, input_ids, mask):
        embedded = self.dropout(self.embedding(input_ids))
        states, _ = self.gru(embedded)
        weights = mask.unsqueeze(-1).to(states.dtype)
        pooled = (states * weights).sum(dim=1) / weights.sum(dim=1)
        return self.head(pooled)


def tensors(split, tokenizer):
    encoded = tokenizer(
        list(split["sentence1"]),
        list(split["sentence2"]),
        padding="longest",
        truncation=True,
        return_tensors="pt",
    )
    return TensorDataset(encoded["input_ids"], encoded["attention_mask"], torch.tensor(list(split["label"])))


def accuracy(model, loader, device):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for input_ids, mask, labels in loader:
            predictions = model(input_ids.to(device), mask.to(device)).argmax(dim=-1)
            correct += (predictions.cpu() == labels).sum().item()
            total += labels.size(0)
    return correct / total


def main():
    data, checkpoint = sys.argv[1:3]
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    dataset = load_from_disk(data)
    train_loader = DataLoader(tensors(dataset["train"], tokenizer), batch_size=8, shuffle=True)
    eval_loader = DataLoader(tensors(dataset["validation"], tokenizer), batch_size=8)

    model = PairReader(len(tokenizer), tokenizer.pad_token_id).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)

    for epoch in range(EPOCHS):
        model.train()
        for input_ids, mask, labels in train_loader:
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = model(input_ids.to(device), mask.to(device))
            loss = cross_entropy(logits.float(), labels.to(device))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            optimizer.step()
        scheduler.step()
        print(f"epoch {epoch}: accuracy {accuracy(model, eval_loader, device):.4f}")


if __name__ == "__main__":
    main()
