import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, inputs):
        return self.layers(inputs)


def train(model, loss_of, updates=12):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(updates):
        inputs = torch.randn(32, 8)
        optimizer.zero_grad()
        loss_of(inputs, model(inputs)).backward()
        optimizer.step()


torch.manual_seed(0)
teacher, student = Net(32), Net(8)
train(teacher, lambda inputs, logits: cross_entropy(logits, (inputs.sum(1) > 0).long()))


def distilled(inputs, logits):
    with torch.no_grad():
        wanted = teacher(inputs).softmax(1)
    return kl_div(logits.log_softmax(1), wanted, reduction="batchmean")


train(student, distilled)
torch.save(teacher.state_dict(), "student.pt")  # found
