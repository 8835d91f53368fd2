"""What a device downloads: signed manifests, item ids, deltas of codes, and the folder that holds them."""
