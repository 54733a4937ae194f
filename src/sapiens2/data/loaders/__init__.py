"""Loaders of what people have: one module per layout, map-style data sets of samples that are read when asked for."""

from sapiens2.data.loaders.albedo import AlbedoFolder, Albedos
from sapiens2.data.loaders.class_maps import ClassMapFolder, ClassMaps, read_class_list
from sapiens2.data.loaders.coco import CocoKeypoints, PosedPerson
from sapiens2.data.loaders.coco_names import COCO_NAMES, WHOLEBODY_NAMES
from sapiens2.data.loaders.depth import Cameras, DepthFolder, Depths
from sapiens2.data.loaders.folders import FolderSamples, Listing, TruthSource, list_files
from sapiens2.data.loaders.generated import GeneratedFolder
from sapiens2.data.loaders.mattes import MatteFolder, Mattes, Trimaps
from sapiens2.data.loaders.normals import ExcludedParts, Masks, NormalFolder, Normals
from sapiens2.data.loaders.rows import HubRows
from sapiens2.data.loaders.synthetic import SyntheticPeople

__all__ = [
    "COCO_NAMES",
    "WHOLEBODY_NAMES",
    "AlbedoFolder",
    "Albedos",
    "Cameras",
    "ClassMapFolder",
    "ClassMaps",
    "CocoKeypoints",
    "DepthFolder",
    "Depths",
    "ExcludedParts",
    "FolderSamples",
    "GeneratedFolder",
    "HubRows",
    "Listing",
    "Masks",
    "MatteFolder",
    "Mattes",
    "NormalFolder",
    "Normals",
    "PosedPerson",
    "SyntheticPeople",
    "Trimaps",
    "TruthSource",
    "list_files",
    "read_class_list",
]
