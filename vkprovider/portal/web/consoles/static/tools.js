// What a person does with a terminal beside typing: find, select all, save, and make the text larger or smaller.
"use strict";

class ConsoleTools {
  static FONT = { key: "vkprovider-console-font", least: 8, most: 32, first: 14, step: 2 };

  #terminal;
  #fit;

  /**
   * @param {Terminal} terminal
   * @param {() => void} fit is called when the size of the text has changed
   */
  constructor(terminal, fit) {
    this.#terminal = terminal;
    this.#fit = fit;
  }

  /** @returns {number} the size of the text that this browser has kept, in pixels */
  static get kept() {
    const { key, least, most, first } = ConsoleTools.FONT;
    try {
      const size = Number(localStorage.getItem(key) ?? first);
      return size >= least && size <= most ? size : first;
    } catch {
      return first; // a browser that keeps nothing
    }
  }

  /** Make the text larger, or smaller where `by` is negative; @returns {number} its size, in pixels */
  enlarge(by) {
    const { key, least, most, step } = ConsoleTools.FONT;
    const size = Math.min(most, Math.max(least, this.#terminal.options.fontSize + by * step));
    this.#terminal.options.fontSize = size;
    this.#fit();
    try {
      localStorage.setItem(key, String(size));
    } catch {
      // a browser that keeps nothing
    }
    return size;
  }

  /** @returns {{row: number, text: string}[]} the lines, each with its first row: a long one has several */
  lines() {
    const buffer = this.#terminal.buffer.active;
    const found = [];
    for (let row = 0; row < buffer.length; row += 1) {
      const text = buffer.getLine(row).translateToString(!buffer.getLine(row + 1)?.isWrapped);
      if (buffer.getLine(row).isWrapped && found.length) found.at(-1).text += text;
      else found.push({ row, text });
    }
    return found;
  }

  /** Select the next place of some words, upwards or downwards from what is selected; @returns {string} what is said */
  find(words, upwards) {
    const width = this.#terminal.cols;
    const sought = words.toLowerCase();
    const places = [];
    for (const { row, text } of sought ? this.lines() : []) {
      const lower = text.toLowerCase();
      for (let at = lower.indexOf(sought); at >= 0; at = lower.indexOf(sought, at + 1)) {
        places.push({ x: at % width, y: row + Math.floor(at / width) });
      }
    }
    if (!places.length) {
      this.#terminal.clearSelection();
      return sought ? "Not found" : "";
    }
    const here = this.#terminal.getSelectionPosition()?.start;
    const above = places.filter(({ x, y }) => !here || y < here.y || (y === here.y && x < here.x)).length;
    const below = places.findIndex(({ x, y }) => here && (y > here.y || (y === here.y && x > here.x)));
    const number = upwards ? (above || places.length) - 1 : Math.max(0, below);
    const { x, y } = places[number];
    this.#terminal.select(x, y, words.length);
    this.#terminal.scrollToLine(Math.max(0, y - Math.floor(this.#terminal.rows / 2)));
    return `${number + 1} of ${places.length}`;
  }

  /** Save all of the text as a file. */
  save(name) {
    const text = `${this.lines().map((line) => line.text.trimEnd()).join("\n").trimEnd()}\n`;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }
}
