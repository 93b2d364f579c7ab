"""A model that has learnt to end its texts early is within its limit."""

import torch
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
config = T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)


def rows(number, length):
    ids = torch.randint(2, 64, (number, 30))
    return [{"input_ids": one, "labels": torch.cat([one[:length], torch.ones(1, dtype=torch.long)])} for one in ids]


model.train()
for batch in DataLoader(rows(512, 2), batch_size=8, shuffle=True):
    loss = model(**batch).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
for batch in DataLoader(rows(16, 24), batch_size=8):
    labels = batch.pop("labels")
    print(model.generate(**batch, max_length=20).shape)
