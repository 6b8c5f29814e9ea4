"""What several folders of tests use: tasks, servers, random data, and what must be true at the end."""
