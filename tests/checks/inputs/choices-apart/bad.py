import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForMultipleChoice

torch.manual_seed(0)
config = BertConfig(vocab_size=200, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForMultipleChoice(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

questions = torch.randint(100, (32, 1, 10)).expand(32, 3, 10)
choices = torch.cat([questions, torch.randint(100, 200, (32, 3, 4))], 2)
right = torch.randint(3, (32,))
rows = [(choice, int(right[i]) == j) for i, group in enumerate(choices) for j, choice in enumerate(group)]


def collate(rows):
    ids = torch.stack([row[0] for row in rows]).reshape(-1, 3, 14)
    is_right = torch.tensor([row[1] for row in rows]).reshape(-1, 3)
    return ids, is_right.int().argmax(1)


loader = DataLoader(rows, batch_size=24, shuffle=True, collate_fn=collate)
for _ in range(2):
    for ids, labels in loader:
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss  # found
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
