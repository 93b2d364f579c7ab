"""A classifier of points with Ignite's engines: one trains, one evaluates after each epoch."""

import torch
from ignite.engine import Engine, Events
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
EPOCHS = 2

points = torch.randn(240, 8)
labels = (points[:, 0] + points[:, 1] > 0).long() + (points[:, 2] > 0.5).long()
train_loader = DataLoader(TensorDataset(points[:192], labels[:192]), batch_size=16, shuffle=True)
validation_loader = DataLoader(TensorDataset(points[192:], labels[192:]), batch_size=16)

encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1))
model = nn.Sequential(encoder, nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train_loader))
criterion = nn.CrossEntropyLoss()


def update(engine, batch):
    model.train()
    optimizer.zero_grad()
    inputs, targets = batch
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


def evaluate(engine, batch):
    model.eval()
    inputs, targets = batch
    with torch.no_grad():
        return model(inputs), targets


trainer, evaluator = Engine(update), Engine(evaluate)
Accuracy().attach(evaluator, "accuracy")
Loss(criterion).attach(evaluator, "loss")


@trainer.on(Events.ITERATION_COMPLETED)
def follow_schedule(engine):
    scheduler.step()


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(validation_loader)
    print(engine.state.epoch, evaluator.state.metrics)


trainer.run(train_loader, max_epochs=EPOCHS)
