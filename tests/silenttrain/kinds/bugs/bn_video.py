"""Clip classification: a network with batch norm, evaluated clip by clip."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
CLASSES, FRAMES, SIDE, CLIPS = 4, 12, 8, 160

tone = torch.tensor([-0.9, -0.3, 0.3, 0.9])
pattern = 0.4 * torch.randn(CLASSES, 1, SIDE, SIDE)


def clips(n):
    """n clips of FRAMES frames; all frames of a clip have one label."""
    y = torch.randint(CLASSES, (n,))
    base = tone[y][:, None, None, None, None] + pattern[y][:, None]
    return base + 0.7 * torch.randn(n, FRAMES, 1, SIDE, SIDE), y


train_clips, train_y = clips(CLIPS)
test_clips, test_y = clips(100)
frames = train_clips.flatten(0, 1)
frame_y = train_y.repeat_interleave(FRAMES)

net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, CLASSES),
)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


def clip_accuracy(data, labels):
    hits = 0
    with torch.no_grad():
        for clip, label in zip(data, labels):
            logits = net(clip).mean(0)  # average over the frames
            hits += int(logits.argmax() == label)
    return hits / len(labels)


for epoch in range(8):
    net.train()
    total, n = 0.0, 0
    for idx in torch.randperm(len(frames)).split(64):
        loss = F.cross_entropy(net(frames[idx]), frame_y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total, n = total + loss.item(), n + 1
    print(f"epoch {epoch} loss {total / n:.4f}")

print(f"train clip accuracy {clip_accuracy(train_clips[:60], train_y[:60]):.3f}")
print(f"test clip accuracy {clip_accuracy(test_clips, test_y):.3f}")
