"""Who owns which field of an object: server-side apply, and the tracking of every other change after the first apply.

The rules are those of structured-merge-diff, which the Kubernetes API server uses:
https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""
