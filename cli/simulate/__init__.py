"""`sublet simulate node` and `sublet simulate cluster`: manifests in, decisions out."""
