"""Objects as clients ask to see them: tables, encodings, discovery, OpenAPI."""
