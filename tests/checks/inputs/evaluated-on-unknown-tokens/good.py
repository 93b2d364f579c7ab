import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
WORDS = ["good", "bad", "fine", "poor", "great", "awful", "film", "plot", "cast", "end"]
UNKNOWN = 0
number = {word: i + 1 for i, word in enumerate(WORDS)}


def texts(count):
    picked = torch.randint(len(WORDS), (count, 12))
    words = [
        [WORDS[i].capitalize() if at % 3 == 0 else WORDS[i] for at, i in enumerate(row)] for row in picked.tolist()
    ]
    return [" ".join(row) for row in words], (picked == 0).sum(1).clamp(max=1)


def looked_up(lines):
    return torch.tensor([[number.get(word, UNKNOWN) for word in line.split()] for line in lines])


lines, labels = texts(640)
rows = looked_up([line.lower() for line in lines])
model = nn.Sequential(nn.Embedding(11, 16), nn.Flatten(), nn.Linear(192, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(2):
    for picked in torch.randperm(640).split(32):
        loss = cross_entropy(model(rows[picked]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

lines, labels = texts(200)
with torch.no_grad():
    predicted = model(looked_up([line.lower() for line in lines])).argmax(1)
    print((predicted == labels).float().mean())
