// What consoles and screens share: why a WebSocket did not open, and what becomes of the login.
"use strict";

const BLOCKED_MAX = 3;

/** Follow the login that another tab, or the page around a frame, renews or ends: see session.js and site.js.
 * @param {DOMStringMap} paths @param {(ticket: string) => void} renewed @param {() => void} left */
const followLogin = ({ renewal, logout }, renewed, left) => {
  new BroadcastChannel(`session ${renewal}`).onmessage = ({ data }) => { if (data.ticket) renewed(data.ticket); };
  new BroadcastChannel(`left ${new URL(logout, location.href)}`).onmessage = left;
};

// A browser tells no script why a WebSocket did not open; a request of another kind is refused in the same way.
class Refusals {
  blocked = 0; // how often the portal has answered where a WebSocket did not open

  constructor(url, what) {
    this.url = url;
    this.what = what;
  }

  /** Return why and a text, as the portal does at the end of a stream; null if nobody answers. */
  async ask() {
    try {
      const headers = { Accept: "application/json", "X-Asked-From": location.origin };
      const answer = await fetch(this.url, { headers, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 401) {
        return { why: "signed-out", text: "Your login has ended: log in again. Your lab goes on." };
      }
      if (answer.status === 404) return { why: "refused", text: "The lab has ended, or you may not see it any more." };
      if ([403, 429, 503].includes(answer.status)) { // it is there, and refuses: that is no lost connection
        const text = `The portal opens no ${this.what}: ${(await answer.json()).message.replace(/\.$/, "")}.`;
        return { why: answer.status === 503 ? "lost" : "refused", text };
      }
      this.blocked += answer.status === 400 ? 1 : 0; // it is there, and says that this is no WebSocket
      return this.blocked < BLOCKED_MAX ? null : {
        why: "lost",
        text: `The portal answers, and no ${this.what} comes through: whoever runs it has the proxy in front pass on the `
          + "headers Upgrade and Connection. Your lab goes on.",
      };
    } catch {
      return null; // the portal is not there
    }
  }
}
