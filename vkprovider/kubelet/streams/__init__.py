"""Sessions over aiohttp: thin shells between `wire` and a client's connection."""
