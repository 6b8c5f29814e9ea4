"""The downstream server: statements, meta tables, receipts."""
