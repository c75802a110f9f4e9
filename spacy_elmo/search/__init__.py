"""Search for passages whose vectors in context are near."""
