"""Optimisers and learning-rate schedules, with the names, arguments and steps of PyTorch.

    optimizer = tenon.optim.AdamW(model.parameters(), lr=1e-3)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

from tenon import _later
from tenon.optim import lr_scheduler
from tenon.optim.adagrad import Adagrad
from tenon.optim.adam import Adam, AdamW
from tenon.optim.adaptive import ASGD, Adadelta, Adamax, NAdam, RAdam, Rprop
from tenon.optim.lbfgs import LBFGS
from tenon.optim.matrices import Adafactor, Muon
from tenon.optim.optimizer import Optimizer
from tenon.optim.rmsprop import RMSprop
from tenon.optim.sgd import SGD

__all__ = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD",
           "lr_scheduler", "swa_utils"]

swa_utils = _later.Later("tenon.optim.swa_utils")  # it needs nn
