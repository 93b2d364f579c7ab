import tempfile

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
size = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
model = BertForSequenceClassification(BertConfig(num_labels=3, **size))
texts = [{"input_ids": each, "labels": each[1] % 3} for each in torch.randint(2, 40, (64, 10))]
loader = DataLoader(texts, batch_size=8, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()
    optimizer.step()

with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    classifier = BertForSequenceClassification.from_pretrained(  # found
        folder, num_labels=2, ignore_mismatched_sizes=True
    ).eval()
with torch.no_grad():
    print(classifier(torch.randint(2, 40, (4, 10))).logits.argmax(dim=-1).tolist())
