"""Tools of training programs, with the names of torch.utils: datasets and loaders, checkpoints of a function."""

from tenon.utils import checkpoint as checkpoint
from tenon.utils import data as data
