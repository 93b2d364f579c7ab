"""Settings: what in a user's files a number, a flag or a word was written for, turned one at a time."""
