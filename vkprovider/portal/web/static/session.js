// A session that goes on: <script data-renew="/login/renew" data-seconds="3600">, the path and how long the token lasts.
//
// One tab of a browser renews for all, before the token ends: who holds the lock asks, and tells the others, whose turn
// finds that it is done. What was asked once is not asked again: an answer that is lost may have used the refresh token
// up, and the session then ends with its token. Open consoles get the ticket of the answer (console.js), because they
// may be at another replica.
"use strict";

(() => {
  const { renew, seconds } = document.currentScript.dataset;
  const NAME = `session ${renew}`;
  const RETRY_S = 10;
  const tabs = new BroadcastChannel(NAME);
  let endsAt = Date.now() + 1000 * Number(seconds);
  let timer = 0;
  let over = false; // nothing more can be asked

  /** Ask when three quarters of the time are over, each tab at another moment. */
  const wait = () => {
    clearTimeout(timer);
    const left = endsAt - Date.now();
    if (!over && left > 0) timer = setTimeout(ask, left * (0.7 + Math.random() / 10));
  };

  /** @param {{seconds: number, ticket: string}} answer */
  const goOn = (answer) => {
    endsAt = Date.now() + 1000 * answer.seconds;
    document.dispatchEvent(new CustomEvent("session:renewed", { detail: answer.ticket }));
    wait();
  };

  const send = async () => {
    const token = document.querySelector('meta[name="csrf"]').content;
    const headers = { "X-CSRF-Token": token, Accept: "application/json" };
    try {
      const answer = await fetch(renew, { method: "POST", headers });
      if (answer.status === 503) { // surely not done
        timer = setTimeout(ask, 1000 * Math.min(RETRY_S, (endsAt - Date.now()) / 4000));
      } else if (answer.ok) {
        const found = await answer.json();
        tabs.postMessage(found);
        goOn(found);
      } else {
        over = true;
      }
    } catch {
      over = true;
    }
    if (over) tabs.postMessage({ over });
  };

  const ask = () => {
    const asked = endsAt;
    const once = () => (endsAt === asked && !over && asked > Date.now() ? send() : undefined);
    return navigator.locks ? navigator.locks.request(NAME, once) : once();
  };

  tabs.onmessage = ({ data }) => {
    if (data.over) over = true;
    else goOn(data);
  };
  wait();
})();
