"""Datasets, samplers and loaders, with the names of torch.utils.data.

    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    for inputs, targets in loader:
        ..."""

from tenon.utils.data.collation import default_collate as default_collate
from tenon.utils.data.collation import default_convert as default_convert
from tenon.utils.data.datasets import *
from tenon.utils.data.loader import DataLoader as DataLoader
from tenon.utils.data.samplers import *
from tenon.utils.data.workers import WorkerInfo as WorkerInfo
from tenon.utils.data.workers import get_worker_info as get_worker_info
