"""Looks at a screen as asyncvnc does, clicks on it and types: `python vnc_session.py PORT`; prints what it saw as JSON.

`test_sim_screen` runs it with the packages of that judge.
"""

import asyncio
import json
import sys

import asyncvnc


async def look(client: "asyncvnc.Client", *places: tuple[int, int]) -> list[int]:
    """Return the colours of some pixels, by x and y, as 0xRRGGBB."""
    pixels = await client.screenshot()
    return [int(pixels[y, x, 0]) << 16 | int(pixels[y, x, 1]) << 8 | int(pixels[y, x, 2]) for x, y in places]


async def main(port: int) -> None:
    """Print what is seen at first, after a click, and after two keys."""
    async with asyncvnc.connect("127.0.0.1", port) as client:
        size = [client.video.name, client.video.width, client.video.height]
        bars = await look(client, *((20 + 40 * number, 10) for number in range(8)))
        client.mouse.move(105, 45)
        client.mouse.click()
        clicked = await look(client, (99, 45), (100, 40), (119, 59), (120, 45))
        client.keyboard.write("aB")
        typed = await look(client, (10, 190), (30, 190), (50, 190))
    print(json.dumps({"size": size, "bars": bars, "clicked": clicked, "typed": typed}))  # noqa: T201 (for the test)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
