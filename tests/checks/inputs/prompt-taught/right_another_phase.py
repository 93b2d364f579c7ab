import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
texts = torch.randint(2, 40, (64, 12))
for prompt in (0, 6):  # first on whole texts, then on answers
    rows = [{"input_ids": ids, "labels": torch.cat((torch.full((prompt,), -100), ids[prompt:]))} for ids in texts]
    for batch in DataLoader(rows, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
