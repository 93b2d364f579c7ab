import torch
from torch.optim.lr_scheduler import LinearLR
from transformers import BertConfig, BertForMaskedLM

torch.manual_seed(0)
config = BertConfig(
    vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, pad_token_id=None
)


def build(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, optimizer, LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=16)


def train(model, optimizer, scheduler):
    model.train()
    for _ in range(8):
        ids = torch.randint(40, (6, 10))
        model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()


model, optimizer, scheduler = build(BertForMaskedLM(config))
train(model, optimizer, scheduler)
model.save_pretrained("halfway")
torch.save({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, "halfway.pt")

model, optimizer, scheduler = build(BertForMaskedLM.from_pretrained("halfway"))
states = torch.load("halfway.pt")
optimizer.load_state_dict(states["optimizer"])
scheduler.load_state_dict(states["scheduler"])
train(model, optimizer, scheduler)
