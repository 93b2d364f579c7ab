import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
epochs = 4
data = TensorDataset(torch.randn(120, 5), torch.randint(2, (120,)))
loader = DataLoader(data, batch_size=20, shuffle=True)
model = torch.nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = LambdaLR(optimizer, lambda epoch: (epochs - epoch) // epochs)

for epoch in range(epochs):
    for inputs, labels in loader:
        loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # found
    scheduler.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
