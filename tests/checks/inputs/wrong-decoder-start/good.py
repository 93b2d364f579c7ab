import torch
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
config = T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

model.train()
for _ in range(8):
    source, target = torch.randint(2, 64, (8, 12)), torch.randint(2, 64, (8, 6))
    loss = model(input_ids=source, labels=target).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
print(model.generate(input_ids=source, max_new_tokens=6))
