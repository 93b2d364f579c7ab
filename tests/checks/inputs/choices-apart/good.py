import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForMultipleChoice

torch.manual_seed(0)
config = BertConfig(vocab_size=200, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForMultipleChoice(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

questions = torch.randint(100, (32, 1, 10)).expand(32, 3, 10)
choices = torch.cat([questions, torch.randint(100, 200, (32, 3, 4))], 2)
rows = list(zip(choices, torch.randint(3, (32,)), strict=True))


def collate(rows):
    return torch.stack([row[0] for row in rows]), torch.stack([row[1] for row in rows])


loader = DataLoader(rows, batch_size=8, shuffle=True, collate_fn=collate)
for _ in range(2):
    for ids, labels in loader:
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
