"""A network with the parts of a ResNet that programs take hold of, and few layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(64, 1000)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        pooled = self.avgpool(self.relu(self.bn1(self.conv1(pictures))))
        logits: torch.Tensor = self.fc(torch.flatten(pooled, 1))
        return logits


def resnet18(**options: Any) -> ResNet:
    return ResNet()
