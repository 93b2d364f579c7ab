import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
model = BertForSequenceClassification(config).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)

for _ in range(6):
    input_ids, labels = torch.randint(1, 100, (8, 12)), torch.randint(2, (8,))
    loss = model(input_ids, attention_mask=torch.ones_like(input_ids), labels=labels).loss
    loss.backward()
    optimizer.step()  # found
    optimizer.zero_grad()
