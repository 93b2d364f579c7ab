import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(
    vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=1
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    ids = torch.randint(1, 60, (16, 12))
    loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=(ids[:, 0] > 30).long()).loss  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
