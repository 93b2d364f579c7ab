import torch
from torch.nn.functional import binary_cross_entropy_with_logits

torch.manual_seed(0)
generator, judge = torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)
makes = torch.optim.Adam(generator.parameters(), lr=1e-3)
judges = torch.optim.Adam(judge.parameters(), lr=1e-3)

for _ in range(10):
    real, noise = torch.randn(8, 2) + 2, torch.randn(8, 3)
    answers = judge(torch.cat([real, generator(noise).detach()]))
    judges.zero_grad()
    binary_cross_entropy_with_logits(answers, torch.cat([torch.ones(8, 1), torch.zeros(8, 1)])).backward()
    judges.step()
    makes.zero_grad()
    (-binary_cross_entropy_with_logits(judge(generator(noise)), torch.zeros(8, 1))).backward()
    makes.step()
