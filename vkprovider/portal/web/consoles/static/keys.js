// What a key sends with Ctrl and Alt, by the character that it gives, so that it is right on every keyboard: xterm.js knows
// these keys by their places on a US one, where the ß of a German one is [, and its Ctrl-ß Escape.
"use strict";

const ConsoleKeys = (() => {
  const IS_WINDOWS = navigator.platform.startsWith("Win");
  const IS_MAC = navigator.platform.startsWith("Mac");
  const ESCAPE = "\x1b";
  const OTHERS = { " ": "\0", "2": "\0", "8": "\x7f", "/": "\x1f" };
  const CIRCUMFLEX = ["Backquote", "BracketLeft"]; // where it is a dead key, which has no character

  /** @returns {string} what Ctrl makes of a character in X11, and so in xterm; "" for nothing */
  const control = (char) => {
    if (/^[@-~]$/.test(char)) return String.fromCharCode(char.charCodeAt(0) & 31);
    if (/^[3-7]$/.test(char)) return String.fromCharCode(char.charCodeAt(0) - 24);
    return OTHERS[char] ?? "";
  };

  /**
   * @param {KeyboardEvent} event
   * @returns {string | null} what is sent; "" if the key is the browser's; null if it is sent as xterm.js does
   */
  const sent = (event) => {
    const { key, code, ctrlKey, altKey, shiftKey } = event;
    const isDead = key === "Dead";
    const isLetter = /^[a-z]$/i.test(key);
    if (event.metaKey || !(ctrlKey || altKey) || (IS_MAC && altKey)) return null;
    if (!isDead && [...key].length !== 1) return null; // a key without a character
    if (ctrlKey && altKey) {
      if (IS_WINDOWS && (event.getModifierState("AltGraph") || !/^[a-z0-9 ]$/i.test(key))) return null; // that is AltGr
      return control(key) && ESCAPE + control(key);
    }
    if (altKey) return isDead ? "" : ESCAPE + key;
    if (shiftKey && code === "Digit6") return control("^"); // Cisco's escape, by its place
    if (isDead) return !shiftKey && CIRCUMFLEX.includes(code) ? control("^") : "";
    if (isLetter) return shiftKey ? "" : null;
    if (key > "~" && event.keyCode >= 65 && event.keyCode <= 90) return shiftKey ? "" : null; // a letter of another script
    return control(key);
  };

  return { sent };
})();
