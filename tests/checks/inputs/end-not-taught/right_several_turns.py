"""Only the answers count, with their ends; questions have ends, too, and the whole another one, which do not."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(vocab_size=30, n_positions=20, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=[0, 1])
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    tokens, attention_mask = torch.randint(2, 30, (8, 18)), torch.ones(8, 18, dtype=torch.long)
    tokens[:, 6], tokens[:, 12], tokens[:, 16], tokens[:, 17] = 1, 1, 1, 0
    labels = tokens.clone()
    labels[:, :7] = labels[:, 17] = -100
    loss = model(input_ids=tokens, attention_mask=attention_mask, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
