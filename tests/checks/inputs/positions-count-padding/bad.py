import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
PAD, LONGEST = 0, 12


def row(_):
    text = torch.randint(2, 40, (int(torch.randint(6, LONGEST + 1, ())),)).tolist()
    padding = LONGEST - len(text)
    ids, mask = torch.tensor([PAD] * padding + text), torch.tensor([0] * padding + [1] * len(text))
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


loader = DataLoader([row(each) for each in range(64)], batch_size=8, shuffle=True)
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()  # found
    optimizer.step()
