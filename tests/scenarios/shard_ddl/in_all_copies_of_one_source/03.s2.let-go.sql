-- when s1 is in sync
UNLOCK TABLES;
