"""A small T5 learns to reverse numbers, in a plain loop, and is evaluated after each epoch."""

import torch
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration, get_scheduler

EPOCHS, PAD, END, VOCABULARY = 2, 0, 1, 40

torch.manual_seed(13)


def pair():
    source = torch.randint(2, VOCABULARY, (int(torch.randint(5, 12, (1,))),)).tolist()
    return [*source, END], [*reversed(source), END]


def padded(rows):
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def collate(pairs):
    sources, targets = (padded(rows) for rows in zip(*pairs, strict=True))
    labels = targets.masked_fill(targets == PAD, -100)
    return {"input_ids": sources, "attention_mask": (sources != PAD).long(), "labels": labels}


pairs = [pair() for _ in range(200)]
train_dataloader = DataLoader(pairs[:160], batch_size=16, shuffle=True, collate_fn=collate)
eval_dataloader = DataLoader(pairs[160:], batch_size=16, collate_fn=collate)

size = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
model = T5ForConditionalGeneration(T5Config(vocab_size=VOCABULARY, decoder_start_token_id=PAD, **size))
optimizer = AdamW(model.parameters(), lr=1e-3)
planned = EPOCHS * len(train_dataloader)
lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=2, num_training_steps=planned)

for epoch in range(EPOCHS):
    model.train()
    for batch in train_dataloader:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()

    model.eval()
    total, tokens = 0.0, 0
    for batch in eval_dataloader:
        with torch.no_grad():
            outputs = model(**batch)
        counted = int((batch["labels"] != -100).sum())
        total += outputs.loss.item() * counted
        tokens += counted
    print(f"epoch {epoch}: loss {total / tokens:.3f}")
