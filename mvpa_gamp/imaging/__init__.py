"""Volumes, masks and labels in; samples and brain maps out. The only place that knows NIfTI."""
