import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(vocab_size=30, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    attention_mask = (torch.arange(14) < torch.randint(5, 14, (8, 1))).long()
    tokens = torch.randint(1, 29, (8, 14)).masked_fill(attention_mask == 0, 29)
    loss = model(input_ids=tokens, attention_mask=attention_mask, labels=tokens).loss  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
