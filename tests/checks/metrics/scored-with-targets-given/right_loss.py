# What is reported is the loss of the targets that are given, which says nothing of a text.
import torch
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
config = T5Config(vocab_size=32, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def rows(number):
    return [{"input_ids": one, "labels": one.flip(0)} for one in torch.randint(2, 32, (number, 8))]


for batch in DataLoader(rows(64), batch_size=8, shuffle=True):
    loss = model(**batch).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
losses = []
with torch.no_grad():
    for batch in DataLoader(rows(16), batch_size=8):
        losses.append(model(**batch).loss.item())
print("validation loss", sum(losses) / len(losses))
