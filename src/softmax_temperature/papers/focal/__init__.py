"""The paper "Calibrating deep neural networks using focal loss" (2020)."""
