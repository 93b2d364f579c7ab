"""Model: a row's logits depend on the row, not on its neighbours, its padding or chance."""
