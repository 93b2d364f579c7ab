import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


def collate(rows):
    texts = sorted((torch.tensor(tokens) for tokens, _ in rows), key=len, reverse=True)
    labels = torch.tensor([label for _, label in rows])
    return pad_sequence(texts, batch_first=True), labels


torch.manual_seed(0)
lengths = torch.randint(3, 12, (64,)).tolist()
texts = [torch.randint(1, 50, (length,)).tolist() for length in lengths]
reviews = [(tokens, int(min(tokens) < 5)) for tokens in texts]
loader = DataLoader(reviews, batch_size=16, shuffle=True, collate_fn=collate)

model = torch.nn.EmbeddingBag(50, 2, padding_idx=0)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(2):
    for tokens, labels in loader:  # found
        optimizer.zero_grad()
        cross_entropy(model(tokens), labels).backward()
        optimizer.step()
