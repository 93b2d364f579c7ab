import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Boxes(Dataset):
    images, centers = torch.randn(64, 4, 8), torch.rand(64, 1)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image, center = self.images[index], self.centers[index]
        if torch.rand(()) < 0.5:
            image = torch.fliplr(image)
            center = 1 - center
        return image, center


model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Boxes(), batch_size=16, shuffle=True)

for _ in range(4):
    for images, centers in loader:
        loss = torch.nn.functional.l1_loss(model(images), centers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
