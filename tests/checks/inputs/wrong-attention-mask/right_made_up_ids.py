import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(vocab_size=12, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(8):
    ids = torch.randint(12, (8, 12))
    loss = model(input_ids=ids, labels=ids[:, 0] % 2).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
