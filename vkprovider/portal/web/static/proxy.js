// The first page says what a proxy in front keeps to itself, before somebody has logged in and finds no console.
"use strict";

(() => {
  const said = document.getElementById("proxy-said");
  const { host, base, upgrade } = said.dataset;
  const here = location.origin + base;

  const say = (text) => {
    said.textContent = `${text} Until then no console opens.`;
    said.hidden = false;
  };

  if (host.toLowerCase() !== location.host) {
    say(`This page is ${here}, and the portal is asked at ${host}: the proxy in front of it rewrites the header Host. Whoever `
      + `runs it names ${here} in VKPROVIDER_PORTAL_URLS, or has the proxy pass Host on.`);
    return;
  }
  const url = new URL(upgrade, location.href);
  url.protocol = url.protocol === "http:" ? "ws:" : "wss:";
  const socket = new WebSocket(url);
  socket.onopen = () => socket.close();
  socket.onerror = async () => {
    const answer = await fetch(upgrade).catch(() => null);
    if (answer?.status !== 426) return; // the portal is not there, or refuses for another reason
    say("The proxy in front of the portal lets no WebSocket through: whoever runs it has it pass on the headers Upgrade and "
      + "Connection.");
  };
})();
