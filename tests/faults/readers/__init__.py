"""Every function of the package that reads a file: fuzzed, or trusted for a reason.

A function that is in neither list makes `test_fuzz.py` fail, so a new reader cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tests.faults.readers import arrays, data_sets, parameters, results, shards, weights
from tests.faults.readers.reader import Reader

READERS: Mapping[str, Reader] = MappingProxyType(
    {
        **arrays.READERS,
        **data_sets.READERS,
        **weights.READERS,
        **parameters.READERS,
        **results.READERS,
        **shards.READERS,
    }
)

_OWN_SOURCE = "reads the project's own source"
_VERIFIED = "the bytes were compared with their digest before"
_JUST_WRITTEN = "reads what the same function wrote before"
_SHIPPED = "comes with the package"
_DIGEST = "takes the digest of whatever is there"
_OF_THIS_CHECKOUT = "reads what this checkout alone writes, and is stopped by what is damaged"

TRUSTED: Mapping[str, str] = MappingProxyType(
    {
        "calibrate._write": _JUST_WRITTEN,
        "code_digest.code_only": _OWN_SOURCE,
        "cost.networks._built": _JUST_WRITTEN,
        "cost.networks._embedded": _JUST_WRITTEN,
        "datasets.prepared.PreparedImages._from_array": _VERIFIED,
        "datasets.prepared.PreparedImages._from_files": _VERIFIED,
        "datasets.prepared_texts.StoredTexts.__iter__": _VERIFIED,
        "deviations.deviations": _OWN_SOURCE,
        "display.drawn": _JUST_WRITTEN,
        "downloads.Expected.fits": _DIGEST,
        "dvc_records.listed_files": _VERIFIED,
        "dvc_records.md5_of": _DIGEST,
        "engines._fresh_progress": "shows the last line of a running cell, whatever it is",
        "locks.alone": "says who holds a lock, whatever it is",
        "machine._processor": "reads what the kernel says of the processor",
        "network_spec.architectures": _OWN_SOURCE,
        "notebooks.execute": _JUST_WRITTEN,
        "papers.classifier_temperature.collect.collect": _VERIFIED,
        "papers.cooling.segmentation.segmentation_pixels": _VERIFIED,
        "papers.temperature_check.collect._predictions": _VERIFIED,
        "parcels._bytes_of": "copies whatever is there; on arrival it is compared with its digest",
        "plan.plan": _OWN_SOURCE,
        "ray_cluster._recorded_address": "an address of Ray's, which is asked whether it answers before it is used",
        "report.rendering._environment": _SHIPPED,
        "results.record_run": _OF_THIS_CHECKOUT,
        "shards.class_folders.FolderImages.content": "hands an image's bytes to image_files.decode_image",
        "stage_code._named": _OWN_SOURCE,
        "stage_code._notebook_code": _OWN_SOURCE,
        "stage_code.stage_modules": _OWN_SOURCE,
        "suggest.study.shipped_study": _SHIPPED,
        "tensor_stream.read_rows": _VERIFIED,
        "training.networks._check_once": _JUST_WRITTEN,
        "translation.vocabulary.Vocabulary.fit": "reads a text in memory that the tokenizers library just made",
    }
)
