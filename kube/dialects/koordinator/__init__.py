"""Koordinator's words: labels, annotations, settings documents and objects of a node, into the model and back."""
