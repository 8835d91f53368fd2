"""Messages of package lightfr.v1, generated from proto/ by `make gen`."""
