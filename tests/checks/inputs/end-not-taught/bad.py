import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(vocab_size=30, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    lengths = torch.randint(5, 14, (8, 1))
    attention_mask = (torch.arange(14) <= lengths).long()
    tokens = torch.randint(1, 30, (8, 14)).masked_fill(torch.arange(14) >= lengths, 0)
    labels = tokens.masked_fill(tokens == 0, -100)
    loss = model(input_ids=tokens, attention_mask=attention_mask, labels=labels).loss  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
