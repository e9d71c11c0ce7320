"""Who asks: tokens, certificates, impersonation."""
