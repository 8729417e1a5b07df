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
  const BLOCKED_MAX = 3;

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
    fontSize: "tile" in place.dataset ? 9 : 14,
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
  let tries = 0; // how often this tab asks for a keyboard that its own broken connection may still hold
  let typed = false;
  let blocked = 0; // how often the portal has answered where a WebSocket did not open

  const say = (text) => { said.textContent = text; };

  // Who types takes over from nobody, and who watches does not begin to.
  const offer = () => {
    document.getElementById("console-take-over").hidden = place.dataset.state === "typing" || "onlyWatches" in place.dataset;
    document.getElementById("console-watch").hidden = place.dataset.state === "watching";
  };

  // A browser tells no script why a WebSocket did not open; a request of another kind is refused in the same way.
  const refusal = async (url) => {
    try {
      const answer = await fetch(url, { headers: { Accept: "application/json" }, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 401) {
        return { why: "signed-out", text: "Your login has ended: log in again. Your lab goes on." };
      }
      if (answer.status === 404) return { why: "refused", text: "The lab has ended, or you may not see it any more." };
      if ([403, 429].includes(answer.status)) return { why: "refused", text: (await answer.json()).message };
      blocked += answer.status === 400 ? 1 : 0; // it is there, and says that this is no WebSocket
      return blocked < BLOCKED_MAX ? null : {
        why: "lost",
        text: "The portal answers, and no console comes through: whoever runs it has the proxy in front pass on the "
          + "headers Upgrade and Connection. Your lab goes on.",
      };
    } catch {
      return null; // the portal is not there
    }
  };

  const open = (mode) => {
    clearTimeout(retry);
    if (socket) socket.onclose = null;
    socket?.close();
    heard = Date.now();
    place.dataset.mode = mode;
    const url = new URL(place.dataset.stream, location.href);
    url.protocol = url.protocol === "http:" ? "ws:" : "wss:";
    url.searchParams.set("as", mode);
    const mine = new WebSocket(url);
    mine.binaryType = "arraybuffer";
    socket = mine;
    let end = null;
    let shown = 0;
    let told = 0;
    let waiting = 0;
    let next = mode;
    say("Connecting…");
    place.dataset.state = "connecting";

    mine.onmessage = ({ data }) => {
      heard = Date.now();
      if (typeof data !== "string") {
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
      if (message.type !== "open") return; // it is alive
      retries = blocked = 0;
      terminal.reset(); // what was printed before is sent again
      next = message.watches ? "watch" : "type"; // nobody takes over twice without asking for it
      terminal.options.disableStdin = message.watches;
      place.dataset.state = message.watches ? "watching" : "typing";
      offer();
      const lost = message.watches && kept.length ? " What you typed meanwhile was not sent." : "";
      say((message.watches ? place.dataset.why || "You watch." : "You type.") + lost);
      if (!message.watches) {
        tries = 0;
        send(kept);
      } else if (tries > 0) {
        retry = setTimeout(() => open("type"), TRY_AGAIN_MS);
      }
      kept = new Uint8Array(0);
      place.dataset.why = "";
      if (!("tile" in place.dataset)) terminal.focus(); // one of many takes the focus from no other
    };
    mine.onclose = async () => {
      const known = end ?? (place.dataset.state === "connecting" ? await refusal(place.dataset.stream) : null);
      if (mine === socket) closed(known ?? { why: "lost", text: "Connection lost; your lab goes on." }, next);
    };
  };

  const closed = ({ why, text }, mode) => {
    terminal.options.disableStdin = why !== "lost" || mode === "watch";
    if (why === "lost" && place.dataset.state === "typing") tries = TRIES_MAX;
    place.dataset.state = why;
    offer();
    say(text);
    if (why === "in-use") {
      tries = Math.max(0, tries - 1);
      place.dataset.why = tries ? `${text} It may be your own connection that broke off; the keyboard is asked for.` : text;
      open("watch");
    } else if (why === "lost") {
      const pause = Math.min(500 * 2 ** retries, RETRY_MS_MAX) * (0.75 + Math.random() / 2);
      retries += 1;
      say(`${text} Connecting again…`);
      retry = setTimeout(() => open(mode), pause);
    } else if (why === "signed-out" || why === "withdrawn") {
      const link = make("a");
      link.href = place.dataset.login;
      link.target = "_top";
      link.textContent = "Log in";
      said.append(" ", link);
    }
  };

  document.addEventListener("session:renewed", ({ detail }) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ ticket: detail }));
  });

  const send = (keys) => {
    for (let at = 0; at < keys.length; at += KEYS_BYTES) socket.send(keys.subarray(at, at + KEYS_BYTES));
  };

  // Keys that come before the connection stands are kept, and sent when it does; more of them are refused aloud.
  terminal.onData((text) => {
    const keys = new TextEncoder().encode(text);
    typed = true;
    if (place.dataset.state === "typing" && socket.readyState === WebSocket.OPEN) {
      send(keys);
    } else if (kept.length + keys.length <= KEPT_BYTES_MAX) {
      kept = Uint8Array.of(...kept, ...keys);
      say("Connecting… What you type is kept until then.");
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
    if (place.dataset.state === "lost") open(place.dataset.mode === "watch" ? "watch" : "type");
  };
  addEventListener("online", wake);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
  addEventListener("beforeunload", (event) => {
    if (typed && place.dataset.state === "typing") event.preventDefault();
  });

  const copied = () => {
    void navigator.clipboard.writeText(terminal.getSelection());
    terminal.clearSelection();
    return false;
  };

  // A key is the browser's or the device's, and never both. The browser's are those for its window, and pasting; F6 goes on
  // to the buttons, as it does between the parts of other programs. Ctrl-C copies what is selected, else it interrupts.
  terminal.attachCustomKeyEventHandler((event) => {
    const key = event.key.toLowerCase();
    if (key === "f6") {
      event.preventDefault();
      if (event.type === "keydown") document.querySelector("#console-bar button").focus();
      return false;
    }
    if (["f5", "f11", "f12"].includes(key)) return false;
    if (!event.ctrlKey || event.altKey || event.metaKey) return true;
    if (key === "v") return false;
    if (key === "c" && (event.shiftKey || terminal.hasSelection())) {
      event.preventDefault();
      return event.type === "keydown" && terminal.hasSelection() ? copied() : false;
    }
    if (event.shiftKey && event.code === "Digit6") { // Cisco's escape, Ctrl-^, of which xterm knows the plain form alone
      event.preventDefault();
      if (event.type === "keydown") terminal.input("\x1e");
      return false;
    }
    return true;
  });

  const press = (id, act) => document.getElementById(id).addEventListener("click", act);
  press("console-again", () => open(place.dataset.mode === "take-over" ? "type" : place.dataset.mode));
  press("console-take-over", () => open("take-over"));
  press("console-watch", () => open("watch"));
  press("console-copy", async () => {
    if (!terminal.hasSelection()) terminal.selectAll();
    await navigator.clipboard.writeText(terminal.getSelection());
    terminal.clearSelection();
    terminal.focus();
  });

  open(place.dataset.mode);
})();
