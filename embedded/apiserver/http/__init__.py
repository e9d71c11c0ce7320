"""The server: HTTPS, who may come in, where a request goes, the audit log."""
