"""Ways to type on a device: `console` answers as a device does, `consoles` serves it, `patty` opens its ports."""
