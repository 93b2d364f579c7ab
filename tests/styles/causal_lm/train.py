"""A small GPT-2 learns to count, in a plain loop, and is evaluated after each epoch."""

import torch
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_scheduler

EPOCHS, PAD, END, VOCABULARY = 2, 0, 1, 40

torch.manual_seed(11)


def sentence():
    """Numbers in steps of 1 to 3, 8 to 15 of them, and the end."""
    first, step, length = (int(torch.randint(*each, (1,))) for each in ((0, 38), (1, 4), (8, 16)))
    return [2 + (first + step * place) % 38 for place in range(length)] + [END]


def collate(rows):
    longest = max(len(row) for row in rows)
    input_ids = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    attention_mask = (input_ids != PAD).long()
    labels = input_ids.masked_fill(attention_mask == 0, -100)
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


sentences = list(dict.fromkeys(tuple(sentence()) for _ in range(300)))
sentences = [list(each) for each in sentences]
train_dataloader = DataLoader(sentences[:160], batch_size=16, shuffle=True, collate_fn=collate)
eval_dataloader = DataLoader(sentences[160:200], batch_size=16, collate_fn=collate)

config = GPT2Config(
    vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=END, eos_token_id=END
)
model = GPT2LMHeadModel(config)
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
        predicted = int((batch["labels"][:, 1:] != -100).sum())
        total += outputs.loss.item() * predicted
        tokens += predicted
    print(f"epoch {epoch}: perplexity {torch.tensor(total / tokens).exp():.1f}")
