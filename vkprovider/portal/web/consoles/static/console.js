// The terminal of a console: xterm, a WebSocket, and how much of the output the terminal has written, so that a noisy
// device never fills the browser. The frames are those of vkprovider/portal/web/consoles/frames.py.
"use strict";

(() => {
  const place = document.getElementById("console");
  const said = document.getElementById("console-status");
  const ACK_BYTES = 32 * 1024;
  const KEYS_BYTES = 16 * 1024;
  const RETRY_MS_MAX = 10_000;
  const KEPT_BYTES_MAX = 4 * 1024; // of keys that wait for a connection
  const SILENT_MS_MAX = 10_000; // the portal says something every four seconds
  const TRY_AGAIN_MS = 4000;
  const TRIES_MAX = 5;
  const NAMED = /^(Tab|F[0-9]+|Arrow[A-Z]|Page[A-Z]|Home|End|Delete)/;

  // xterm makes style elements, and sets style attributes for colours that are not of its palette. The policy of the
  // page asks for a nonce for the one, and forbids the other; what a script sets as a property it allows.
  const make = document.createElement.bind(document);
  document.createElement = (name, options) => {
    const made = make(name, options);
    if (name === "style") made.nonce = place.dataset.nonce;
    return made;
  };
  const setAttribute = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function set(name, value) {
    if (name === "style") this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };

  const terminal = new Terminal({
    fontFamily: "ui-monospace, monospace",
    fontSize: "tile" in place.dataset ? 9 : ConsoleTools.kept,
    scrollback: 5000,
    screenReaderMode: true,
    theme: {
      background: "#14181d", foreground: "#e8ecf0", cursor: "#e8ecf0", selectionBackground: "#3d5a80",
      black: "#5c6773", red: "#ff8080", green: "#7fd89b", yellow: "#f0c06a", blue: "#8fc3f8", magenta: "#dfa6f0",
      cyan: "#7fd6d6", white: "#e8ecf0", brightBlack: "#a9b4c0", brightRed: "#ffa0a0", brightGreen: "#a3e6b8",
      brightYellow: "#f7d68f", brightBlue: "#b4d7fa", brightMagenta: "#ecc6f7", brightCyan: "#a8e6e6",
      brightWhite: "#ffffff",
    },
  });
  const fit = new FitAddon.FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  fit.fit();
  new ResizeObserver(() => fit.fit()).observe(place);

  let socket = null;
  let retry = 0;
  let retries = 0;
  let heard = 0; // when the portal has said something last
  let kept = new Uint8Array(0); // keys that were typed before the connection stood
  const ofKept = () => (kept.length ? " What you type is kept until then." : "");
  let tries = 0; // how often this tab asks for a keyboard that its own broken connection may still hold
  let typist = null; // who types: { you, who, since, left }
  let typed = false;
  let began = 0; // when this page connected, by the portal's clock
  const refusals = new Refusals(place.dataset.stream, "console");

  const say = (text) => {
    // Sentences of the provider have times of day in UTC.
    said.textContent = text.replace(/\b(\d\d):(\d\d) UTC\b/g, (_, hour, minute) => {
      const at = new Date();
      at.setUTCHours(Number(hour), Number(minute), 0, 0);
      return clock(at);
    });
  };
  const clock = (at) => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

  const button = (id) => document.getElementById(`console-${id}`);

  // A button that would do nothing is not there.
  const offer = () => {
    const state = place.dataset.state;
    const isOpen = ["typing", "taken", "watching"].includes(state);
    button("again").hidden = isOpen || ["connecting", "signed-out"].includes(state);
    button("take-over").hidden = !["taken", "watching"].includes(state) || "onlyWatches" in place.dataset;
    button("watch").hidden = !["typing", "taken"].includes(state);
  };

  // Who types, and since when, as the portal has said last.
  const tell = () => {
    if (!typist) return;
    const { you, who, since, left } = typist;
    const when = since ? ` since ${clock(new Date(since))}` : "";
    if (place.dataset.state === "watching") {
      const silent = left ? `You watch; who typed left at ${clock(new Date(left))}.` : place.dataset.why || "You watch.";
      say(when ? `You watch; ${who || "another session"} types${when}.` : silent);
    } else {
      say(you ? `You type${when}.` : `${who || "Another session"} types${when}: you watch, and type again when it has left.`);
    }
  };

  const follow = (message) => {
    typist = message;
    if (place.dataset.state !== "watching") {
      place.dataset.state = message.you ? "typing" : "taken";
      offer();
      if (!message.you) {
        stopPasting();
      } else if (!paste.isRunning) { // what came before the keyboard was there
        tries = 0;
        send(kept);
        kept = new Uint8Array(0);
        paste.run();
      }
    } else if (message.since || message.left) {
      place.dataset.why = "You watch."; // whoever typed when this page came
    }
    tell();
  };

  /** Connect; `again` is when this page did so before, if nobody has asked for it once more. */
  const open = (mode, again = 0) => {
    clearTimeout(retry);
    if (socket) socket.onclose = null;
    socket?.close();
    heard = Date.now();
    place.dataset.mode = mode;
    const url = new URL(place.dataset.stream, location.href);
    url.protocol = url.protocol === "http:" ? "ws:" : "wss:";
    url.searchParams.set("as", mode);
    if (again) url.searchParams.set("again", String(again));
    else place.dataset.why = "";
    const mine = new WebSocket(url);
    mine.binaryType = "arraybuffer";
    socket = mine;
    let end = null;
    let shown = 0;
    let told = 0;
    let waiting = 0;
    let next = mode;
    say(`Connecting…${ofKept()}`);
    typist = null;
    place.dataset.state = "connecting";
    offer();

    mine.onmessage = ({ data }) => {
      heard = Date.now();
      if (typeof data !== "string") {
        paste.heard(decoder.decode(data, { stream: true }));
        waiting += data.byteLength;
        terminal.write(new Uint8Array(data), () => {
          waiting -= data.byteLength;
          shown += data.byteLength;
          place.dataset.shown = String(shown);
          if ((shown - told >= ACK_BYTES || !waiting) && mine.readyState === WebSocket.OPEN) {
            told = shown;
            mine.send(JSON.stringify({ shown }));
          }
        });
        return;
      }
      const message = JSON.parse(data);
      if (message.type === "end") {
        end = message;
        return;
      }
      if (message.type === "typist") follow(message);
      if (message.type !== "open") return; // it is alive
      began = message.began;
      retries = refusals.blocked = 0;
      terminal.reset(); // what was printed before is sent again
      next = message.watches ? "watch" : "type"; // nobody takes over twice without asking for it
      terminal.options.disableStdin = message.watches;
      if (message.watches) {
        place.dataset.state = "watching"; // who wants to type does when the device's side has let them in
        offer();
        place.dataset.why = (place.dataset.why || "You watch.") + (kept.length ? " What you typed meanwhile was not sent." : "");
        say(place.dataset.why);
        kept = new Uint8Array(0);
        stopPasting();
        if (tries > 0) retry = setTimeout(() => open("type", began), TRY_AGAIN_MS);
      }
      if (!("tile" in place.dataset)) terminal.focus(); // one of many takes the focus from no other
    };
    mine.onclose = async () => {
      const known = end ?? (place.dataset.state === "connecting" ? await refusals.ask() : null);
      if (mine === socket) closed(known ?? { why: "lost", text: "Connection lost; your lab goes on." }, next);
    };
  };

  const closed = ({ why, text }, mode) => {
    terminal.options.disableStdin = why !== "lost" || mode === "watch";
    if (paste.isRunning) stopPasting();
    if (why === "lost" && place.dataset.state === "typing") tries = TRIES_MAX;
    place.dataset.state = why;
    offer();
    say(text);
    if (why === "in-use") {
      tries = Math.max(0, tries - 1);
      place.dataset.why = tries ? `${text} It may be your own connection that broke off; the keyboard is asked for.` : text;
      open("watch", began);
    } else if (why === "lost") {
      const pause = Math.min(500 * 2 ** retries, RETRY_MS_MAX) * (0.75 + Math.random() / 2);
      retries += 1;
      say(`${text} Connecting again…${ofKept()}`);
      retry = setTimeout(() => open(mode, began), pause);
    } else if (why === "signed-out" || why === "withdrawn") {
      const link = make("a");
      link.href = place.dataset.login;
      link.target = "_top";
      link.textContent = "Log in";
      said.append(" ", link);
    }
  };

  const renewed = (ticket) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ ticket }));
  };
  followLogin(place.dataset, renewed, () => {
    clearTimeout(retry);
    socket.onclose = null;
    socket.close();
    closed({ why: "signed-out", text: "You have logged out; your lab goes on." });
  });

  // Another session may have taken over; the provider, which lets one type, says so again.
  const isAtKeyboard = () => ["typing", "taken"].includes(place.dataset.state) && socket.readyState === WebSocket.OPEN;

  const send = (keys) => {
    for (let at = 0; at < keys.length; at += KEYS_BYTES) socket.send(keys.subarray(at, at + KEYS_BYTES));
  };

  // Keys that come before the connection stands are kept, and sent when it does; more of them are refused aloud.
  terminal.onData((text) => {
    const keys = new TextEncoder().encode(text);
    typed = true;
    if (paste.isRunning) {
      say("Pasting: Esc stops it; other keys wait for its end, and are not sent before.");
    } else if (isAtKeyboard()) {
      send(keys);
    } else if (kept.length + keys.length <= KEPT_BYTES_MAX) {
      kept = Uint8Array.of(...kept, ...keys);
      say(`Connecting…${ofKept()}`);
    } else {
      say("There is no connection: this is not sent any more.");
    }
  });

  // A connection whose other end is gone says nothing, also no end.
  const check = () => {
    const silent = Date.now() - heard;
    if (!socket || socket.readyState > WebSocket.OPEN || silent < SILENT_MS_MAX) return;
    const mode = [place.dataset.state, place.dataset.mode].some((each) => each.startsWith("watch")) ? "watch" : "type";
    socket.onclose = null;
    socket.close();
    closed({ why: "lost", text: "The portal has not answered for ten seconds; your lab goes on." }, mode);
  };
  setInterval(check, 1000);
  const wake = () => {
    check();
    if (place.dataset.state === "lost") open(place.dataset.mode === "watch" ? "watch" : "type", began);
  };
  addEventListener("online", wake);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
  addEventListener("beforeunload", (event) => {
    if (typed && place.dataset.state === "typing") event.preventDefault();
  });

  const bar = button("pasting");
  const showPaste = () => {
    bar.hidden = !paste.isRunning;
    if (!paste.isRunning) {
      if (isAtKeyboard()) tell();
      return;
    }
    button("pasted").max = paste.lines;
    button("pasted").value = Math.max(0, paste.sent - 1);
    const left = paste.leftS > 90 ? `about ${Math.ceil(paste.leftS / 60)} min left` : `about ${Math.ceil(paste.leftS)} s left`;
    button("paste-left").textContent = `line ${paste.sent} of ${paste.lines}${paste.leftS ? `, ${left}` : ""}`;
  };
  const decoder = new TextDecoder();
  const paste = new PacedPaste((text) => send(new TextEncoder().encode(text)), showPaste);

  const unsent = button("unsent");

  /** Stop a paste, and say what was not sent. */
  const stopPasting = () => {
    const left = paste.stop();
    if (!left.length) return;
    const lines = left.length === 1 ? "1 line was" : `${left.length} lines were`;
    unsent.hidden = false;
    unsent.textContent = `The paste was stopped: ${lines} not sent, from “${left[0].slice(0, 60)}” on.`;
  };

  // A paste goes as fast as the device echoes it. A program that asks for pastes as such reads them at its own speed.
  const pasted = (text) => {
    unsent.hidden = true;
    if (terminal.options.disableStdin || place.dataset.state === "taken") {
      unsent.hidden = false;
      unsent.textContent = "You do not type here: nothing was pasted.";
    } else if (terminal.modes.bracketedPasteMode) {
      terminal.paste(text);
    } else {
      typed = true;
      paste.add(text.replace(/\r?\n/g, "\r"));
      if (isAtKeyboard()) paste.run();
      else say("Connecting… What you paste is kept until then.");
    }
  };
  place.addEventListener("paste", (event) => {
    event.preventDefault();
    event.stopPropagation();
    pasted(event.clipboardData.getData("text/plain"));
  }, true);

  const tools = new ConsoleTools(terminal, () => fit.fit());
  const words = button("find-words");
  const find = (upwards) => { button("find-said").textContent = tools.find(words.value, upwards); };
  const showFind = (isShown) => {
    button("find").hidden = !isShown;
    if (isShown) words.select();
    (isShown ? words : terminal).focus();
  };

  const copied = () => {
    void navigator.clipboard.writeText(terminal.getSelection());
    terminal.clearSelection();
    return false;
  };

  const isOurs = (event, act) => {
    event.preventDefault();
    if (event.type === "keydown") act();
    return false;
  };

  // A key is the browser's or the device's, and never both. The browser's are those for its window, and pasting; F6 goes on
  // to the buttons, as it does between the parts of other programs. Ctrl-C copies what is selected, else it interrupts.
  terminal.attachCustomKeyEventHandler((event) => {
    const key = event.key.toLowerCase();
    if (key === "f6") return isOurs(event, () => document.querySelector("#console-bar button:not([hidden])").focus());
    if (["f5", "f11", "f12"].includes(key)) return false;
    const isCtrl = event.ctrlKey && !event.altKey && !event.metaKey;
    if (isCtrl && key === "v") return false;
    if (isCtrl && event.shiftKey && key === "f") return isOurs(event, () => showFind(true));
    if (isCtrl && key === "c" && (event.shiftKey || terminal.hasSelection())) {
      event.preventDefault();
      return event.type === "keydown" && terminal.hasSelection() ? copied() : false;
    }
    if (paste.isRunning && (key === "escape" || (isCtrl && key === "c"))) return isOurs(event, stopPasting);
    const sent = ConsoleKeys.sent(event);
    if (sent) return isOurs(event, () => terminal.input(sent));
    if (NAMED.test(event.key)) event.preventDefault(); // xterm sends it, and leaves Shift-Tab, F1 and others to the browser, too
    return sent === null;
  });

  const press = (id, act) => button(id).addEventListener("click", act);
  press("again", () => open(place.dataset.mode === "take-over" ? "type" : place.dataset.mode));
  press("take-over", () => open("take-over"));
  press("watch", () => open("watch"));
  press("copy", async () => {
    if (!terminal.hasSelection()) terminal.selectAll();
    await navigator.clipboard.writeText(terminal.getSelection());
    terminal.clearSelection();
    terminal.focus();
  });
  press("all", () => {
    terminal.selectAll();
    terminal.focus();
  });
  press("save", () => tools.save(`${place.dataset.device}.txt`));
  press("larger", () => tools.enlarge(1));
  press("smaller", () => tools.enlarge(-1));
  press("search", () => showFind(button("find").hidden));
  press("newer", () => find(false));
  press("paste-stop", () => {
    stopPasting();
    terminal.focus();
  });
  button("find").addEventListener("submit", (event) => {
    event.preventDefault();
    find(true);
  });
  button("find").addEventListener("keydown", (event) => {
    if (event.key === "Escape") showFind(false);
  });

  open(place.dataset.mode);
})();
