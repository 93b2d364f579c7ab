import tempfile

import torch
from datasets import Dataset
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
inputs = torch.randn(64, 4)
rows = TensorDataset(inputs, (inputs.sum(dim=1) > 0).long())

for width in (8, 16):  # which is better, all else being equal?
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    torch.manual_seed(1)
    for batch, labels in DataLoader(rows, batch_size=8, shuffle=True):
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

ids = torch.randint(1, 50, (48, 6))
texts = Dataset.from_dict({"input_ids": ids.tolist(), "labels": (ids[:, 0] > 25).long().tolist()})
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=2
)
for lr in (1e-3, 1e-4):
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, learning_rate=lr, num_train_epochs=1, save_strategy="no", report_to="none", disable_tqdm=True
        )
        Trainer(model_init=lambda: BertForSequenceClassification(config), args=arguments, train_dataset=texts).train()
