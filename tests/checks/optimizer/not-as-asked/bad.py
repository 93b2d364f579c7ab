import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
size = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
model = BertForSequenceClassification(BertConfig(**size))
rows = [{"input_ids": torch.randint(2, 40, (8,)), "labels": number % 2} for number in range(32)]
settings = {"per_device_train_batch_size": 8, "num_train_epochs": 1, "report_to": "none", "save_strategy": "no"}
arguments = TrainingArguments("out", learning_rate=2e-4, use_cpu=True, **settings)  # found
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
Trainer(model=model, args=arguments, train_dataset=rows, optimizers=(optimizer, None)).train()
