// The screen of a device: noVNC, over a WebSocket of the portal that carries the bytes of VNC, and texts as a console's does.
"use strict";

(() => {
  const place = document.getElementById("screen");
  const said = document.getElementById("console-status");
  const RETRY_MS_MAX = 10_000;
  const SILENT_MS_MAX = 10_000; // the portal says something every four seconds
  const button = (id) => document.getElementById(`screen-${id}`);
  const refusals = new Refusals(place.dataset.stream, "screen");
  let socket = null;
  let rfb = null;
  let heard = 0; // when the portal has said something last
  let retry = 0;
  let retries = 0;
  let looks = "looks" in place.dataset;

  const tell = (state, text) => {
    place.dataset.state = state;
    said.textContent = text;
    button("again").hidden = ["shown", "connecting"].includes(state);
    button("use").hidden = state !== "shown" || !looks;
    button("look").hidden = state !== "shown" || looks;
    button("secure").hidden = state !== "shown" || looks;
  };

  const show = (changed = looks) => {
    looks = changed;
    rfb.viewOnly = looks;
    tell("shown", looks ? "You look; your keys and clicks are not sent." : "Keys and clicks go to the device. All who have the screen open share it.");
    if (!looks) rfb.focus();
  };

  const open = async () => {
    clearTimeout(retry);
    tell("connecting", "Connecting…");
    const { default: RFB } = await import(place.dataset.novnc);
    let end = null;
    const url = new URL(place.dataset.stream, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const mine = new WebSocket(url);
    socket = mine;
    heard = Date.now();
    rfb = new RFB(place, mine);
    rfb.scaleViewport = true;
    rfb.viewOnly = looks;
    const take = mine.onmessage;
    mine.onmessage = (event) => {
      heard = Date.now();
      if (typeof event.data !== "string") {
        take(event);
        return;
      }
      const message = JSON.parse(event.data);
      if (message.type === "end") end = message;
    };
    rfb.addEventListener("connect", () => {
      retries = refusals.blocked = 0;
      show();
    });
    rfb.addEventListener("credentialsrequired", () => {
      end = { why: "refused", text: "The device asks for a password of VNC, which this page does not send." };
      rfb.disconnect();
    });
    mine.addEventListener("close", async () => {
      const known = end ?? (place.dataset.state === "connecting" ? await refusals.ask() : null);
      if (mine === socket) closed(known ?? { why: "lost", text: "Connection lost; your lab goes on." });
    });
  };

  const closed = ({ why, text }) => {
    tell(why, text);
    if (why === "lost") {
      const pause = Math.min(500 * 2 ** retries, RETRY_MS_MAX) * (0.75 + Math.random() / 2);
      retries += 1;
      said.append(" Connecting again…");
      retry = setTimeout(open, pause);
    } else if (why === "signed-out" || why === "withdrawn") {
      const link = document.createElement("a");
      link.href = place.dataset.login;
      link.textContent = "Log in";
      said.append(" ", link);
    }
  };

  // A connection whose other end is gone says nothing, also no end.
  setInterval(() => {
    if (!socket || socket.readyState > WebSocket.OPEN || Date.now() - heard < SILENT_MS_MAX) return;
    socket = null;
    rfb.disconnect();
    closed({ why: "lost", text: "The portal has not answered for ten seconds; your lab goes on." });
  }, 1000);

  // All other keys are the device's: F6 goes on to the buttons, as it does from a terminal.
  place.addEventListener("keydown", (event) => {
    if (event.key !== "F6") return;
    event.preventDefault();
    event.stopPropagation();
    document.querySelector("#screen-bar button:not([hidden])").focus();
  }, true);

  const renewed = (ticket) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ ticket }));
  };
  followLogin(place.dataset, renewed, () => {
    clearTimeout(retry);
    socket = null;
    rfb?.disconnect();
    closed({ why: "signed-out", text: "You have logged out; your lab goes on." });
  });
  button("again").addEventListener("click", open);
  button("use").addEventListener("click", () => show(false));
  button("look").addEventListener("click", () => show(true));
  button("secure").addEventListener("click", () => rfb.sendCtrlAltDel());

  open();
})();
