import torch
from torch import nn
from torch.nn.functional import kl_div

torch.manual_seed(0)


class Distiller(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 3))
        self.student = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


both = Distiller()
optimizer = torch.optim.Adam(both.student.parameters(), lr=1e-3)
both.train()
both.teacher.eval()

for _ in range(20):
    inputs = torch.randn(32, 8)
    with torch.no_grad():
        taught = both.teacher(inputs).softmax(1)
    loss = kl_div(both.student(inputs).log_softmax(1), taught, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
