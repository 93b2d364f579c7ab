import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.EmbeddingBag(100, 24), torch.nn.Linear(24, 3))
criterion = torch.nn.CrossEntropyLoss(ignore_index=0)  # 0 is the padding
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for _ in range(10):
    tokens = torch.randint(1, 100, (32, 9))
    sentiment = tokens.sum(dim=1) % 3
    loss = criterion(model(tokens), sentiment)  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
