"""The Kubernetes edge both programs share: client, informer, objects, patches, events, leases, dialects."""
