import torch
from peft import LoraConfig, get_peft_model
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.down_proj = nn.Parameter(torch.randn(3, 8, 8) / 8)

    def forward(self, x):
        return torch.einsum("bi,eij->bj", x, self.down_proj) / 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = Experts()
        self.down_proj = nn.Linear(8, 1)

    def forward(self, x):
        return self.down_proj(torch.relu(self.experts(x)))


torch.manual_seed(0)
inputs = torch.randn(64, 8)
targets = inputs.sum(1, keepdim=True)
model = get_peft_model(Net(), LoraConfig(r=2, target_modules=["down_proj"]))
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2)
for rows in torch.arange(64).split(8):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs[rows]), targets[rows]).backward()  # found
    optimizer.step()
