// A paste, sent as fast as the device echoes it: a device at a serial line drops what comes faster than it reads.
"use strict";

// One line, or 64 characters of a longer one, is under way at a time. The next goes when all of it has come back, in order
// and maybe with other output in between. What is echoed otherwise, such as a password, counts as read when the device has
// said something since, and then nothing for five seconds. A device that says nothing at all is waited for.
class PacedPaste {
  static PIECE = /[^\r]{0,63}\r|[^\r]{1,64}/gu;
  static SILENT_MS = 5000;

  #send;
  #changed;
  #pieces = []; // that were not sent
  #awaited = null; // the characters of the piece under way; null if there is none
  #echoed = 0; // how many of them have come back
  #timer = 0;
  #began = 0;

  /** How many lines there are in all, and how many of them were sent. */
  lines = 0;
  sent = 0;

  /**
   * @param {(text: string) => void} send types at the device
   * @param {() => void} changed is called when a line was sent, and at the end
   */
  constructor(send, changed) {
    this.#send = send;
    this.#changed = changed;
  }

  /** Whether it is sent now. */
  get isRunning() {
    return this.#awaited !== null;
  }

  /** Whether something of it was not sent. */
  get isWaiting() {
    return this.#pieces.length > 0;
  }

  /** How many seconds the rest takes, as fast as it went until now. */
  get leftS() {
    const done = this.sent - 1;
    return done > 0 ? ((performance.now() - this.#began) / done) * ((this.lines - done) / 1000) : 0;
  }

  /** Add text, whose lines end with a return, as a terminal types it. */
  add(text) {
    const pieces = text.match(PacedPaste.PIECE) ?? [];
    this.#pieces.push(...pieces);
    this.lines += pieces.filter((piece, at) => piece.endsWith("\r") || at === pieces.length - 1).length;
  }

  /** Begin to send, or go on. */
  run() {
    if (this.isRunning || !this.isWaiting) return;
    this.#began = performance.now();
    this.#next();
  }

  /** Take note of what the device prints. */
  heard(text) {
    if (!this.isRunning) return;
    clearTimeout(this.#timer);
    for (const char of text) {
      const awaited = this.#awaited[this.#echoed];
      if (char === awaited || (char === "\n" && awaited === "\r")) this.#echoed += 1;
    }
    if (this.#echoed >= this.#awaited.length) this.#next();
    else this.#timer = setTimeout(() => this.#next(), PacedPaste.SILENT_MS);
  }

  /** End; @returns {string[]} the lines that were not sent */
  stop() {
    const left = this.#pieces.join("").split("\r").filter(Boolean);
    this.#pieces = [];
    this.#end();
    return left;
  }

  #next() {
    const piece = this.#pieces.shift();
    if (piece === undefined) {
      this.#end();
      return;
    }
    this.#awaited = [...piece].filter((char) => char === "\r" || char >= " ");
    this.#echoed = 0;
    if (piece.endsWith("\r") || !this.isWaiting) this.sent += 1;
    this.#send(piece);
    this.#changed();
  }

  #end() {
    clearTimeout(this.#timer);
    this.#awaited = null;
    this.lines = this.sent = 0;
    this.#changed();
  }
}
