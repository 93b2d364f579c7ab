import torch
from torch import nn

torch.manual_seed(0)
letters = "abcdef"
model = nn.GRU(6, 32, bidirectional=True)
head = nn.Linear(64, len(letters) + 1)
ctc = nn.CTCLoss(blank=len(letters), zero_infinity=True)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-2)

for _ in range(25):
    said = torch.randint(0, len(letters), (16, 4))
    sound = nn.functional.one_hot(said.repeat_interleave(3, 1), len(letters)).float()
    sound = sound + 0.1 * torch.randn(sound.shape)
    logits = head(model(sound.transpose(0, 1))[0])
    lengths, letters_of = torch.full((16,), 12), torch.full((16,), 4)
    loss = ctc(logits.log_softmax(2), said, lengths, letters_of)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
