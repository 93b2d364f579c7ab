import torch
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
config = T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def rows(number):
    ids = torch.randint(2, 64, (number, 30))
    return [{"input_ids": one, "labels": one.flip(0)} for one in ids]


model.train()
for batch in DataLoader(rows(64), batch_size=8, shuffle=True):
    loss = model(**batch).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
right = 0
for batch in DataLoader(rows(16), batch_size=8):
    labels = batch.pop("labels")
    written = model.generate(**batch, max_length=20)[:, 1:]  # found
    right += sum(one[: len(two)].tolist() == two.tolist() for one, two in zip(labels, written, strict=True))
print("exactly right", right / 16)
