// A session that goes on: <script data-renew="/login/renew" data-seconds="3600">, the path and how long the token lasts.
//
// One tab of a browser renews for all, before the token ends: who holds the lock asks, and tells the others, whose turn
// finds that it is done. Where no answer comes it asks again: the portal sends no refresh token twice, and says so (409).
// Open consoles, also those in frames, hear the ticket of the answer (followLogin), because they may be at another replica.
"use strict";

(() => {
  const { renew, seconds } = document.currentScript.dataset;
  const NAME = `session ${renew}`;
  const RETRY_MS = 10_000;
  const tabs = new BroadcastChannel(NAME);
  let endsAt = Date.now() + 1000 * Number(seconds);
  let timer = 0;
  let over = false; // nothing more can be asked by this tab; one of a later login may go on

  /** Ask when three quarters of the time are over, each tab at another moment. */
  const wait = () => {
    clearTimeout(timer);
    const left = endsAt - Date.now();
    if (!over && left > 0) timer = setTimeout(ask, left * (0.7 + Math.random() / 10));
  };

  /** @param {{seconds: number, ticket: string}} answer */
  const goOn = (answer) => {
    endsAt = Date.now() + 1000 * answer.seconds;
    wait();
  };

  const send = async () => {
    const token = document.querySelector('meta[name="csrf"]').content;
    const headers = { "X-CSRF-Token": token, Accept: "application/json" };
    try {
      const answer = await fetch(renew, { method: "POST", headers, keepalive: true });
      if (answer.ok) {
        const found = await answer.json();
        tabs.postMessage(found);
        goOn(found);
        return;
      }
      over = answer.status < 500 && answer.status !== 429;
    } catch {
      // there is no network, or the answer was lost
    }
    if (!over) timer = setTimeout(ask, Math.min(RETRY_MS, Math.max(1000, (endsAt - Date.now()) / 4)));
  };

  const ask = () => {
    const asked = endsAt;
    const once = () => (endsAt === asked && !over && asked > Date.now() ? send() : undefined);
    return navigator.locks ? navigator.locks.request(NAME, once) : once();
  };

  tabs.onmessage = ({ data }) => { if (data.seconds) goOn(data); }; // a page of an older version says `over`, too
  wait();
})();
