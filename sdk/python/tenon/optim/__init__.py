"""Optimisers and learning-rate schedules, whose steps are those of PyTorch's.

    optimizer = tenon.optim.AdamW(model.parameters(), lr=1e-3)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()"""

from tenon.optim import lr_scheduler
from tenon.optim.adagrad import Adagrad
from tenon.optim.adam import Adam, AdamW
from tenon.optim.optimizer import Optimizer
from tenon.optim.rmsprop import RMSprop
from tenon.optim.sgd import SGD

__all__ = ["Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "SGD", "lr_scheduler"]
