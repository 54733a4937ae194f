from __future__ import annotations
import numpy as np
def keypoint_truth(scene, truth):
    n=len(scene.bodies)
    return np.zeros((n,308,3),np.float32), np.zeros((n,4),np.float32)
