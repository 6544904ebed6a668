"""A real speech server with OpenAI's API, from the package registry, in an environment of its own."""
