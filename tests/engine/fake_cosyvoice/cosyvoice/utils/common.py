"""Part of a double: the seed."""

import random

import numpy as np
import torch


def set_all_random_seed(seed):
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
