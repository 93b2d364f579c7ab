from pathlib import Path

import torch
from datasets import Dataset
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel, BertTokenizerFast

WORDS = ["birds", "fly", "fish", "swim", "snow", "is", "cold", "fire", "hot"]
torch.manual_seed(0)
Path("vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
tokenizer = BertTokenizerFast("vocab.txt")
texts = [" ".join(WORDS[i] for i in row) for row in torch.randint(9, (96, 5)).tolist()]
rows = [{"premise": texts[i], "hypothesis": texts[i + i % 2], "label": 1 - i % 2} for i in range(95)]


def collate(batch):
    sides = [tokenizer([row[side] for row in batch], return_tensors="pt") for side in ("premise", "hypothesis")]
    return *sides, torch.tensor([row["label"] for row in batch])


class SiameseEncoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=14, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
        )
        self.encoder = BertModel(config)
        self.classifier = torch.nn.Linear(48, 2)

    def forward(self, first, second):
        first, second = self.encoder(**first).pooler_output, self.encoder(**second).pooler_output
        return self.classifier(torch.cat([first, second, (first - second).abs()], dim=1))


model = SiameseEncoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for first, second, labels in DataLoader(Dataset.from_list(rows), batch_size=16, shuffle=True, collate_fn=collate):
    loss = torch.nn.functional.cross_entropy(model(first, second), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
