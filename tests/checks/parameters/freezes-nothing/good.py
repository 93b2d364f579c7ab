import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(config)
model.bert.requires_grad_(False)  # only the head is to be trained
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    input_ids, labels = torch.randint(1, 50, (8, 10)), torch.randint(2, (8,))
    loss = model(input_ids, attention_mask=torch.ones_like(input_ids), labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
