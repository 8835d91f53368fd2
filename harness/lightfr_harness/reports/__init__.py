"""Reports: records in, pages out; they compute nothing new."""
