"""Serial consoles: `console` answers as a device does, `consoles` serves it, `patty` opens its ports."""
